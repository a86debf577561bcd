package fibula

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

func TestLive(t *testing.T) {
	live := must(NewLive(Options{}))
	routes := []Route{{prefix("10.0.0.0/8"), 1}, {prefix("2001:db8::/32"), 2}, {prefix("::ffff:10.1.0.0/112"), 3}}
	if err := live.Set(routes...); err != nil {
		t.Fatal(err)
	}
	reader := live.Reader()
	expect := func(text string, value uint64, ok bool) {
		t.Helper()
		found, is := live.Lookup(addr(text))
		values := []uint64{0}
		reader.LookupBatch([]netip.Addr{addr(text)}, values)
		if found != value || is != ok || values[0] != value {
			t.Errorf("%s: %d, %v and %d, not %d", text, found, is, values[0], value)
		}
	}
	expect("10.2.0.1", 1, true)
	expect("10.1.0.1", 3, true)
	expect("::ffff:10.1.0.1", 3, true)
	expect("2001:db8::1", 2, true)
	expect("11.0.0.1", NoValue, false)
	expect("2001:db8::1%eth0", NoValue, false)
	if value, ok := live.Find(prefix("10.1.0.0/16")); !ok || value != 3 {
		t.Error(value, ok)
	}
	if _, ok := live.Find(prefix("10.1.0.0/17")); ok {
		t.Error("it has no such route")
	}
	if err := live.Remove(prefix("10.1.0.0/16"), prefix("192.0.2.0/24")); err != nil {
		t.Fatal(err)
	}
	expect("10.1.0.1", 1, true)
	if live.Count(4) != 1 || live.Count(6) != 1 || live.Count(5) != 0 ||
		live.Engine(4) == "none" || live.Memory(4).Routes == 0 {
		t.Error(live.Count(4), live.Count(6), live.Engine(4), live.Memory(4))
	}
	counters := live.Counters(4)
	if counters.Changes != 4 || counters.Generations == 0 || live.Changes() != live.Visible() {
		t.Errorf("%+v, %d of %d", counters, live.Visible(), live.Changes())
	}
}

func TestOptions(t *testing.T) {
	none := uint64(7)
	wide := must(NewLive(Options{Wide: true, Default: &none, Collect: 10 * time.Millisecond}))
	if err := wide.Set(Route{prefix("10.0.0.0/8"), 1 << 40}); err != nil {
		t.Fatal(err)
	}
	if !wide.Wait(wide.Changes(), time.Minute) {
		t.Fatal("the change is not visible")
	}
	reader := wide.Reader()
	values, v6 := make([]uint64, 2), make([]uint64, 1)
	reader.Wide4([]uint32{0x0a000001, 0x0b000001}, values)
	reader.Wide6([][16]byte{{0x20}}, v6)
	if values[0] != 1<<40 || values[1] != 7 || v6[0] != 7 {
		t.Error(values, v6)
	}
	if value, ok := wide.Lookup(addr("11.0.0.1")); value != 7 || !ok {
		t.Error(value, ok)
	}
	if must(NewLive(Options{Engine: "runmap"})).Engine(6) == "" {
		t.Error("an engine")
	}
	for sentence, options := range map[string]Options{
		"Collect is -1ms": {Collect: -time.Millisecond}, "Collect is 2400000h": {Collect: 2_400_000 * time.Hour},
		"quick": {Engine: "quick"}, "has a NUL byte": {Engine: "a\x00"},
	} {
		if _, err := NewLive(options); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%+v: %v", options, err)
		}
	}
}

// TestRefused: a wrong route changes nothing.
func TestRefused(t *testing.T) {
	live := must(NewLive(Options{}))
	good := Route{prefix("10.0.0.0/8"), 1}
	for sentence, bad := range map[string]Route{
		"not valid": {}, "bits beyond the prefix length": {netip.PrefixFrom(addr("10.0.0.1"), 8), 1},
		"stands for no route": {prefix("10.0.0.0/8"), uint64(None)},
	} {
		if err := live.Set(good, bad); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%v: %v", bad, err)
		}
		if live.Count(4) != 0 || live.Changes() != 0 {
			t.Errorf("%v has changed the table", bad)
		}
	}
	if err := live.Remove(netip.Prefix{}); err == nil {
		t.Error("no prefix")
	}
	if _, err := live.Covering(netip.Prefix{}); err == nil {
		t.Error("no prefix")
	}
	if _, ok := live.Match(netip.Addr{}); ok {
		t.Error("no address")
	}
	path := built(t, networks)
	if err := live.Load(path, "site"); err == nil {
		t.Error("a column of texts")
	}
	if err := live.Load(path+"x", ""); err == nil || errors.Unwrap(err) == nil {
		t.Error(err)
	}
	if err := live.Save(filepath.Join(path, "x")); err == nil {
		t.Error("a file is no folder")
	}
}

func TestWalkAndFiles(t *testing.T) {
	live := must(NewLive(Options{}))
	prefixes := nested(9, 700)
	routes := make([]Route, len(prefixes))
	for at, prefix := range prefixes {
		routes[at] = Route{prefix, uint64(at)}
	}
	path := filepath.Join(t.TempDir(), "saved.fib")
	if err := errors.Join(live.Set(routes...), live.Save(path)); err != nil {
		t.Fatal(err)
	}
	loaded := must(NewLive(Options{}))
	if err := loaded.Load(path, ""); err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(slices.Collect(loaded.Walk(prefix("0.0.0.0/0"))), slices.Collect(loaded.Walk(prefix("::/0"))))
	if !slices.IsSortedFunc(all, func(a, b Route) int {
		if c := a.Prefix.Addr().Compare(b.Prefix.Addr()); c != 0 {
			return c
		}
		return a.Prefix.Bits() - b.Prefix.Bits()
	}) {
		t.Error("they are not in order")
	}
	byText := func(a, b Route) int { return strings.Compare(a.Prefix.String(), b.Prefix.String()) }
	slices.SortFunc(all, byText)
	if !slices.Equal(all, routes) {
		t.Errorf("%d routes, not %d", len(all), len(routes))
	}
	for range loaded.Walk(prefix("::/0")) {
		break
	}
	if len(slices.Collect(loaded.Walk(netip.Prefix{}))) != 0 {
		t.Error("routes of no prefix")
	}
}

// TestVRFs: each has its own routes, and keeps the first table alive.
func TestVRFs(t *testing.T) {
	live := must(NewLive(Options{Collect: time.Millisecond}))
	seven := must(live.VRF(7))
	set := errors.Join(live.Set(Route{prefix("10.0.0.0/8"), 1}), seven.Set(Route{prefix("10.0.0.0/8"), 7}))
	if err := errors.Join(set, live.Flush(), seven.Flush()); err != nil {
		t.Fatal(err)
	}
	if value, _ := live.Lookup(addr("10.0.0.1")); value != 1 {
		t.Error(value)
	}
	live.Close()
	live = nil
	for range 3 {
		runtime.GC()
		if value, _ := must(seven.VRF(7)).Lookup(addr("10.0.0.1")); value != 7 {
			t.Error(value)
		}
		if err := errors.Join(seven.Set(Route{prefix("10.1.0.0/16"), 8}), seven.Flush()); err != nil {
			t.Error(err)
		}
	}
}

// TestReadersOutliveTheTable: they keep its last state.
func TestReadersOutliveTheTable(t *testing.T) {
	live := must(NewLive(Options{}))
	if err := live.Set(Route{prefix("10.0.0.0/8"), 1}); err != nil {
		t.Fatal(err)
	}
	reader := live.Reader()
	reader.Keep(true)
	values := []uint32{0}
	look := func(expected uint32) {
		t.Helper()
		if reader.Lookup4([]uint32{0x0a000001}, values); values[0] != expected {
			t.Error(values)
		}
	}
	look(1)
	if err := live.Set(Route{prefix("10.0.0.0/8"), 2}); err != nil {
		t.Fatal(err)
	}
	look(1)
	if live.Memory(4).Held != 1 {
		t.Error(live.Memory(4))
	}
	reader.Release()
	look(2)
	live.Close()
	defer func() {
		if said := recover(); said == nil || !strings.Contains(said.(string), "the live table is closed") {
			t.Error(said)
		}
	}()
	for range 3 {
		runtime.GC()
		time.Sleep(time.Millisecond)
		look(2)
	}
	live.Lookup(addr("10.0.0.1"))
}

// TestUnderChanges: goroutines read while others change. A value is that of a state which there was, and readers never
// go back: all routes have the number of the change that set them last, in one call.
func TestUnderChanges(t *testing.T) {
	live := must(NewLive(Options{}))
	prefixes := []netip.Prefix{prefix("10.0.0.0/8"), prefix("10.1.0.0/16"), prefix("2001:db8::/32")}
	set := func(value uint64) {
		routes := make([]Route, len(prefixes))
		for at, prefix := range prefixes {
			routes[at] = Route{prefix, value}
		}
		// A route that comes and goes: the engine changes its shape.
		more := prefix("10.1.2.0/24")
		err := live.Set(append(routes, Route{more, value})...)
		if value%2 == 0 {
			err = errors.Join(err, live.Remove(more))
		}
		if err != nil {
			t.Error(err)
		}
	}
	set(0)
	var done atomic.Bool
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			random := rand.New(rand.NewPCG(uint64(worker), 0))
			reader := live.Reader()
			keys, values := make([]uint32, 100), make([]uint32, 100)
			before := uint32(0)
			for round := 0; !done.Load(); round++ {
				for at := range keys {
					keys[at] = []uint32{0x0a000001, 0x0a010001, 0x0a010201}[random.IntN(3)]
				}
				reader.Lookup4(keys, values)
				for at, value := range values {
					if value != values[0] || value < before {
						t.Errorf("%#x: %d, not %d, after %d", keys[at], value, values[0], before)
						return
					}
				}
				before = values[0]
				if value, ok := live.Lookup(addr("2001:db8::1")); !ok || value+1 < uint64(before) {
					t.Errorf("%d after %d", value, before)
					return
				}
				if round%16 == 0 {
					reader.Release()
					reader = live.Reader()
				}
			}
		}()
	}
	for value := uint64(1); value <= 3000; value++ {
		set(value)
		if value%500 == 0 {
			runtime.GC()
		}
	}
	done.Store(true)
	wait.Wait()
	if value, _ := live.Lookup(addr("10.1.2.1")); value != 3000 {
		t.Error(value)
	}
}

// TestReaderOfTwo: a second goroutine is refused, since C would not notice it.
func TestReaderOfTwo(t *testing.T) {
	reader := must(NewLive(Options{})).Reader()
	reader.use()
	defer func() {
		if said := recover(); said == nil || !strings.Contains(said.(string), "one Reader") {
			t.Error(said)
		}
	}()
	reader.Release()
}
