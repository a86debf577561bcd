package fibula

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const networks = "prefix,site,vlan\n10.0.0.0/8,hq,1\n10.20.0.0/16,zürich,1099511627776\n2001:db8::/32,,\n"

func TestTable(t *testing.T) {
	table := must(Open(built(t, networks)))
	if found := table.Columns(); !reflect.DeepEqual(found, []string{"site", "vlan"}) || table.Routes() != 3 {
		t.Fatalf("%q, %d routes", found, table.Routes())
	}
	site, vlan := must(table.Column("site")), must(table.Column("vlan"))
	for text, expected := range map[string][3]string{
		"10.20.0.1":        {"10.20.0.0/16", "zürich", "1099511627776"},
		"10.1.2.3":         {"10.0.0.0/8", "hq", "1"},
		"::ffff:10.20.0.1": {"10.20.0.0/16", "zürich", "1099511627776"},
		"2001:db8::1":      {"2001:db8::/32", "", ""},
		"192.0.2.1":        {"invalid Prefix", "", ""},
		"2001:db8::1%eth0": {"invalid Prefix", "", ""},
	} {
		addr := netip.MustParseAddr(text)
		prefix, matched, is := table.Match(addr)
		row, ok := table.Lookup(addr)
		if row != matched || is != ok || ok != prefix.IsValid() {
			t.Errorf("%s: rows %d and %d", text, row, matched)
		}
		if found := [3]string{prefix.String(), site.Text(row), vlan.Text(row)}; found != expected {
			t.Errorf("%s: %q, not %q", text, found, expected)
		}
		if number, is := vlan.Number(row); is != (expected[2] != "") || is && number != 1 && number != 1<<40 {
			t.Errorf("%s: %d, %v", text, number, is)
		}
	}
	if site.IsNumber() || !vlan.IsNumber() || site.Name() != "site" || site.Text(99) != "" {
		t.Error("columns")
	}
	if _, ok := site.Number(0); ok {
		t.Error("a text is no number")
	}
	if len(site.Texts()) < 3 || !strings.Contains(strings.Join(vlan.Texts(), " "), "1099511627776") {
		t.Errorf("%q, %q", site.Texts(), vlan.Texts())
	}
	if table.Engine(4) == "" || table.Engine(5) != "" || table.Engine(260) != "" || table.Memory(4).Routes == 0 {
		t.Errorf("%q, %q, %v", table.Engine(4), table.Engine(260), table.Memory(4))
	}
	table.LookupBatch(nil, nil)
	table.Lookup4(nil, nil)
	table.Lookup6(nil, nil)
}

// TestLongText: a value that is longer than the room for most is whole.
func TestLongText(t *testing.T) {
	for _, length := range []int{0, 1, 118, 119, 120, 121, 5000} {
		long := strings.Repeat("ü", length/2) + strings.Repeat("x", length%2)
		table := must(Open(built(t, "prefix,site,other\n10.0.0.0/8,"+long+",a\n")))
		row, _ := table.Lookup(netip.MustParseAddr("10.0.0.1"))
		if found := must(table.Column("site")).Text(row); found != long {
			t.Errorf("%d bytes, not %d: %q", len(found), length, found)
		}
	}
}

func TestErrors(t *testing.T) {
	path := built(t, networks)
	content := must(os.ReadFile(path))
	folder := filepath.Dir(path)
	damaged := append([]byte(nil), content...)
	damaged[len(damaged)/2] ^= 0x40
	for name, bytes := range map[string][]byte{
		"damaged.fib": damaged, "text.fib": []byte("10.0.0.0/8,hq\n"), "empty.fib": nil,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), bytes, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	for name, sentence := range map[string]string{
		"absent.fib": "absent.fib: cannot open the snapshot: No such file", "damaged.fib": "damaged",
		"text.fib":  "not a fibula snapshot",
		"empty.fib": "empty.fib", ".": folder, "a\x00b": "the path has a NUL byte",
	} {
		table, err := Open(folder + "/" + name)
		if table != nil || err == nil || !strings.Contains(err.Error(), sentence) ||
			!strings.HasPrefix(err.Error(), "fibula: ") {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(err, fs.ErrNotExist) != (name == "absent.fib") {
			t.Errorf("%s: its cause is %v", name, errors.Unwrap(err))
		}
		var ours *Error
		if !errors.As(err, &ours) {
			t.Errorf("%s: %T", name, err)
		}
	}
	if _, err := OpenBytes(damaged); err == nil {
		t.Error("damaged bytes")
	}
	if _, err := OpenBytes(nil); err == nil {
		t.Error("no bytes")
	}
	table := must(OpenBytes(content))
	_, err := table.Column("asn")
	if err == nil || !strings.Contains(err.Error(), `no column "asn"; there are: site, vlan`) {
		t.Error(err)
	}
	if row, ok := table.Lookup(netip.MustParseAddr("10.0.0.1")); !ok || must(table.Column("site")).Text(row) != "hq" {
		t.Error("a table of bytes")
	}
}

// TestErrorsOfThreads: each goroutine has its own sentence, whatever thread it runs on.
func TestErrorsOfThreads(t *testing.T) {
	var wait sync.WaitGroup
	for range 8 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for range 200 {
				path := filepath.Join(os.TempDir(), "absent", strings.Repeat("x", 1+int(runtime.NumGoroutine())%7))
				if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path+":") {
					t.Error(path, err)
				}
				runtime.Gosched()
			}
		}()
	}
	wait.Wait()
}

// TestClose: a call that runs ends as usual, a later one panics, and memory that is in use is not freed.
func TestClose(t *testing.T) {
	path := built(t, networks)
	addrs := make([]netip.Addr, 4096)
	for at := range addrs {
		addrs[at] = netip.MustParseAddr([]string{"10.20.0.1", "2001:db8::1"}[at%2])
	}
	for range 20 {
		table := must(Open(path))
		site := must(table.Column("site"))
		var wait sync.WaitGroup
		for range 4 {
			wait.Add(1)
			go func() {
				defer wait.Done()
				defer func() {
					if said := recover(); said == nil || !strings.Contains(said.(string), "the table is closed") {
						t.Error(said)
					}
				}()
				rows := make([]uint32, len(addrs))
				for {
					table.LookupBatch(addrs, rows)
					for at, row := range rows {
						if row == None || at%2 == 0 && row != rows[0] {
							t.Error("a wrong row", at, row)
							return
						}
					}
				}
			}()
		}
		row, _ := table.Lookup(addrs[0])
		if table.Close() != nil || table.Close() != nil {
			t.Error("it closes")
		}
		runtime.GC()
		wait.Wait()
		runtime.GC()
		if site.Text(row) != "zürich" {
			t.Error("a column keeps its table")
		}
	}
}

func TestParseAddr(t *testing.T) {
	for text, expected := range map[string]string{
		"192.0.2.1": "192.0.2.1", " 192.0.2.1\r": "192.0.2.1", "192.0.2.1:443": "192.0.2.1", "192.0.2.1/32": "192.0.2.1",
		"[2001:db8::1]": "2001:db8::1", "[2001:db8::1]:443": "2001:db8::1", "2001:DB8::1/128": "2001:db8::1",
		"::ffff:192.0.2.1": "192.0.2.1", "[::ffff:192.0.2.1]:1": "192.0.2.1",
		"": "", "192.0.2.0/24": "", "192.0.2.1:": "", "192.0.2.1:65536": "", "[192.0.2.1": "", "[192.0.2.1]": "",
		"[::1]x": "", "::1/32": "", "fe80::1%eth0": "", "[fe80::1%eth0]:1": "", "192.0.2.01": "", "host": "",
	} {
		addr, ok := ParseAddr(text)
		if ok != (expected != "") || ok && addr.String() != expected {
			t.Errorf("%q: %v, not %q", text, addr, expected)
		}
	}
}
