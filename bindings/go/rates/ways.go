package main

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gaissmai/bart"
	"github.com/oschwald/maxminddb-golang/v2"
	"go4.org/netipx"

	fibula "fibula.example/bindings/go"
)

// batch is the number of addresses of a call.
const batch = 1024

// tables are the same routes in all packages.
type tables struct {
	table  *bart.Table[uint32]
	fast   *bart.Fast[uint32]
	names4 *bart.Fast[string]
	set    *netipx.IPSet
	mmdb   *maxminddb.Reader
	fib    *fibula.Table
	live   *fibula.Live
	asns   []uint32
	texts  []string
}

func open(fib, mmdb string, v4, v6 []route) *tables {
	t := &tables{table: new(bart.Table[uint32]), fast: new(bart.Fast[uint32]), names4: new(bart.Fast[string])}
	var set netipx.IPSetBuilder
	var given []fibula.Route
	for _, route := range slices.Concat(v4, v6) {
		t.table.Insert(route.prefix, route.asn)
		t.fast.Insert(route.prefix, route.asn)
		t.names4.Insert(route.prefix, nameOf(route.asn))
		set.AddPrefix(route.prefix)
		given = append(given, fibula.Route{Prefix: route.prefix, Value: uint64(route.asn)})
	}
	t.set = must(set.IPSet())
	t.mmdb = must(maxminddb.Open(mmdb))
	t.fib = must(fibula.Open(fib))
	asn := must(t.fib.Column("asn"))
	t.texts = must(t.fib.Column("name")).Texts()
	for row := range t.texts {
		number, _ := asn.Number(uint32(row))
		t.asns = append(t.asns, uint32(number))
	}
	t.live = must(fibula.NewLive(fibula.Options{}))
	check(t.live.Set(given...))
	return t
}

// inBatches calls a function with a batch of keys and the same of answers.
func inBatches[K any](keys []K, call func([]K, []uint32)) {
	rows := make([]uint32, batch)
	for len(keys) > 0 {
		size := min(batch, len(keys))
		call(keys[:size], rows[:size])
		keys = keys[size:]
	}
}

// numbers are the ways to the number of an address.
func (t *tables) numbers(addrs []netip.Addr, is4 bool) []way {
	single := func(lookup func(netip.Addr) (uint32, bool)) func() uint64 {
		return func() (sum uint64) {
			for _, addr := range addrs {
				if asn, ok := lookup(addr); ok {
					sum += uint64(asn)
				}
			}
			return sum
		}
	}
	sumOf := func(rows []uint32) (sum uint64) {
		for _, row := range rows {
			if row != fibula.None {
				sum += uint64(t.asns[row])
			}
		}
		return sum
	}
	ways := []way{
		{"bart.Table", func() (sum uint64) {
			for _, addr := range addrs {
				if asn, ok := t.table.Lookup(addr); ok {
					sum += uint64(asn)
				}
			}
			return sum
		}},
		{"bart.Fast", func() (sum uint64) {
			for _, addr := range addrs {
				if asn, ok := t.fast.Lookup(addr); ok {
					sum += uint64(asn)
				}
			}
			return sum
		}},
		{"mmdb, numbers kept by offset", t.byOffset(addrs)},
		{"fibula, Lookup", single(func(addr netip.Addr) (uint32, bool) {
			row, ok := t.fib.Lookup(addr)
			if !ok {
				return 0, false
			}
			return t.asns[row], true
		})},
		{"fibula, LookupBatch", func() (sum uint64) {
			inBatches(addrs, func(addrs []netip.Addr, rows []uint32) {
				t.fib.LookupBatch(addrs, rows)
				sum += sumOf(rows)
			})
			return sum
		}},
		{"fibula, Live.Lookup", single(func(addr netip.Addr) (uint32, bool) {
			value, ok := t.live.Lookup(addr)
			return uint32(value), ok
		})},
	}
	sumOfValues := func(values []uint32) (sum uint64) {
		for _, value := range values {
			if value != fibula.None {
				sum += uint64(value)
			}
		}
		return sum
	}
	reader := t.live.Reader()
	if is4 {
		numbers := make([]uint32, len(addrs))
		for at, addr := range addrs {
			bytes := addr.As4()
			numbers[at] = uint32(bytes[0])<<24 | uint32(bytes[1])<<16 | uint32(bytes[2])<<8 | uint32(bytes[3])
		}
		return append(ways, way{"fibula, Lookup4", func() (sum uint64) {
			inBatches(numbers, func(keys, rows []uint32) { t.fib.Lookup4(keys, rows); sum += sumOf(rows) })
			return sum
		}}, way{"fibula, Reader.Lookup4", func() (sum uint64) {
			inBatches(numbers, func(keys, values []uint32) { reader.Lookup4(keys, values); sum += sumOfValues(values) })
			return sum
		}})
	}
	bytes := make([][16]byte, len(addrs))
	for at, addr := range addrs {
		bytes[at] = addr.As16()
	}
	return append(ways, way{"fibula, Lookup6", func() (sum uint64) {
		inBatches(bytes, func(keys [][16]byte, rows []uint32) { t.fib.Lookup6(keys, rows); sum += sumOf(rows) })
		return sum
	}}, way{"fibula, Reader.Lookup6", func() (sum uint64) {
		inBatches(bytes, func(keys [][16]byte, values []uint32) { reader.Lookup6(keys, values); sum += sumOfValues(values) })
		return sum
	}})
}

// byOffset looks up in the mmdb file, and decodes each record once.
func (t *tables) byOffset(addrs []netip.Addr) func() uint64 {
	known := make(map[uintptr]uint32)
	return func() (sum uint64) {
		for _, addr := range addrs {
			result := t.mmdb.Lookup(addr)
			if !result.Found() {
				continue
			}
			asn, ok := known[result.Offset()]
			if !ok {
				check(result.DecodePath(&asn, "asn"))
				known[result.Offset()] = asn
			}
			sum += uint64(asn)
		}
		return sum
	}
}

// names are the ways from a text, as a log has it, to a name; its length is summed up.
func (t *tables) names(addrs []netip.Addr) []way {
	texts := make([]string, len(addrs))
	for at, addr := range addrs {
		texts[at] = addr.String()
	}
	return []way{
		{"netip.ParseAddr, bart.Fast", func() (sum uint64) {
			for _, text := range texts {
				if name, ok := t.names4.Lookup(must(netip.ParseAddr(text))); ok {
					sum += uint64(len(name))
				}
			}
			return sum
		}},
		{"netip.ParseAddr, mmdb", func() (sum uint64) {
			var name string
			for _, text := range texts {
				if result := t.mmdb.Lookup(must(netip.ParseAddr(text))); result.Found() {
					check(result.DecodePath(&name, "name"))
					sum += uint64(len(name))
				}
			}
			return sum
		}},
		{"fibula, ParseAddr, LookupBatch", func() (sum uint64) {
			addrs := make([]netip.Addr, batch)
			inBatches(texts, func(texts []string, rows []uint32) {
				for at, text := range texts {
					addrs[at], _ = fibula.ParseAddr(text)
				}
				t.fib.LookupBatch(addrs[:len(texts)], rows)
				for _, row := range rows {
					if row != fibula.None {
						sum += uint64(len(t.texts[row]))
					}
				}
			})
			return sum
		}},
	}
}

// members are the ways to whether an address is in a prefix.
func (t *tables) members(addrs []netip.Addr) []way {
	return []way{
		{"netipx.IPSet", func() (sum uint64) {
			for _, addr := range addrs {
				if t.set.Contains(addr) {
					sum++
				}
			}
			return sum
		}},
		{"bart.Fast, Contains", func() (sum uint64) {
			for _, addr := range addrs {
				if t.fast.Contains(addr) {
					sum++
				}
			}
			return sum
		}},
		{"fibula, LookupBatch", func() (sum uint64) {
			inBatches(addrs, func(addrs []netip.Addr, rows []uint32) {
				t.fib.LookupBatch(addrs, rows)
				for _, row := range rows {
					if row != fibula.None {
						sum++
					}
				}
			})
			return sum
		}},
	}
}

// changes are the ways to change a table that others read without locks. Each round sets the routes to other values.
func (t *tables) changes(all, changed []route) []way {
	var shared atomic.Pointer[bart.Table[uint32]]
	first := new(bart.Table[uint32])
	live := must(fibula.NewLive(fibula.Options{}))
	collecting := must(fibula.NewLive(fibula.Options{Collect: 10 * time.Millisecond}))
	given := make([]fibula.Route, len(all))
	for at, route := range all {
		first.Insert(route.prefix, route.asn)
		given[at] = fibula.Route{Prefix: route.prefix, Value: uint64(route.asn)}
	}
	shared.Store(first)
	check(live.Set(given...))
	check(collecting.Set(given...))
	sum := func(lookup func(netip.Addr) uint64) (sum uint64) {
		for _, route := range changed {
			sum += lookup(route.prefix.Addr())
		}
		return sum
	}
	ofLive := func(live *fibula.Live, end func() error) func() uint64 {
		return func() uint64 {
			for _, route := range changed {
				check(live.Set(fibula.Route{Prefix: route.prefix, Value: uint64(route.asn)}))
			}
			check(end())
			return sum(func(addr netip.Addr) uint64 { value, _ := live.Lookup(addr); return value })
		}
	}
	return []way{
		{"bart.Table, InsertPersist", func() uint64 {
			for _, route := range changed {
				shared.Store(shared.Load().InsertPersist(route.prefix, route.asn))
			}
			return sum(func(addr netip.Addr) uint64 { asn, _ := shared.Load().Lookup(addr); return uint64(asn) })
		}},
		{"fibula, Live.Set", ofLive(live, func() error { return nil })},
		{"fibula, Live.Set, collected for 10 ms", ofLive(collecting, collecting.Flush)},
	}
}
