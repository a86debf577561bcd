package fibula

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// versioned writes a table to a file whose value is `version` for all addresses.
func versioned(t *testing.T, path string, version uint64) {
	t.Helper()
	live := must(NewLive(Options{}))
	all := []Route{{netip.MustParsePrefix("0.0.0.0/0"), version}, {netip.MustParsePrefix("::/0"), version}}
	if err := errors.Join(live.Set(all...), live.Save(path)); err != nil {
		t.Fatal(err)
	}
}

// TestReplaced: under load, each answer is of the old table or of the new one, and of the last one in the end.
func TestReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.fib")
	versioned(t, path, 0)
	file := must(OpenFile(path, 0))
	addrs := make([]netip.Addr, 2000)
	for at := range addrs {
		addrs[at] = netip.AddrFrom4([4]byte{byte(at), byte(at >> 8), 1, 1})
		if at%3 == 0 {
			addrs[at] = netip.AddrFrom16([16]byte{0x20, 1, 15: byte(at)})
		}
	}
	const last = 40
	var done atomic.Bool
	var seen atomic.Int64 // changes of the version that goroutines saw
	var wait sync.WaitGroup
	for range 3 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			rows := make([]uint32, len(addrs))
			before := uint64(0)
			for !done.Load() {
				table, err := file.Table()
				if err != nil {
					t.Error(err)
					return
				}
				table.LookupBatch(addrs, rows)
				column := must(table.Column("value"))
				version, ok := column.Number(rows[0])
				if !ok || version < before || version > last {
					t.Errorf("version %d after %d, %v", version, before, ok)
					return
				}
				if version != before {
					seen.Add(1)
				}
				before = version
				for at, row := range rows {
					if found, ok := column.Number(row); !ok || found != version {
						t.Errorf("address %d is of version %d, not %d", at, found, version)
						return
					}
				}
			}
		}()
	}
	for version := uint64(1); version <= last; version++ {
		versioned(t, path, version)
		// Until it is in use: then there is something to see between two replacements.
		for {
			table, err := file.Table()
			if err != nil {
				t.Fatal(err)
			}
			row, _ := table.Lookup(addrs[0])
			if found, _ := must(table.Column("value")).Number(row); found == version {
				break
			}
			runtime.Gosched()
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	done.Store(true)
	wait.Wait()
	if seen.Load() < 3 {
		t.Errorf("the goroutines saw %d replacements", seen.Load())
	}
}

// TestBadReplacement: a file that is damaged or gone leaves the table that there is, and is reported once.
func TestBadReplacement(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.fib")
	if _, err := OpenFile(path, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	versioned(t, path, 1)
	file := must(OpenFile(path, 0))
	expect := func(version uint64, sentence string) {
		t.Helper()
		table, err := file.Table()
		if (err == nil) != (sentence == "") || err != nil && !strings.Contains(err.Error(), sentence) {
			t.Fatalf("%v, not %q", err, sentence)
		}
		row, _ := table.Lookup(netip.MustParseAddr("10.0.0.1"))
		if found, ok := must(table.Column("value")).Number(row); !ok || found != version {
			t.Fatalf("version %d, not %d", found, version)
		}
	}
	replace := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o400), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	expect(1, "")
	replace("no table")
	expect(1, "not a fibula snapshot")
	expect(1, "")
	replace("no table")
	expect(1, "not a fibula snapshot")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect(1, "No such file")
	expect(1, "")
	versioned(t, path, 2)
	expect(2, "")
	if file.Path() != path {
		t.Error(file.Path())
	}
}

// TestInterval: before the time, the file is not looked at, but by Reload.
func TestInterval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.fib")
	versioned(t, path, 1)
	file := must(OpenFile(path, time.Hour))
	before := must(file.Table())
	versioned(t, path, 2)
	if must(file.Table()) != before {
		t.Error("it was looked at")
	}
	if must(file.Reload()) == before || must(file.Table()) == before {
		t.Error("it was not looked at")
	}
}
