package fibula

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// numbered is a table whose column `id` numbers the prefixes, and an oracle of them.
func numbered(t testing.TB, prefixes []netip.Prefix) (*Table, []uint32, oracle) {
	t.Helper()
	known := make(oracle)
	var csv strings.Builder
	csv.WriteString("prefix,id\n")
	for number, prefix := range prefixes {
		known[prefix] = number
		fmt.Fprintf(&csv, "%s,%d\n", prefix, number)
	}
	table := must(Open(built(t, csv.String())))
	column := must(table.Column("id"))
	ids := make([]uint32, 0, len(prefixes))
	for row := uint32(0); ; row++ {
		id, ok := column.Number(row)
		if !ok {
			return table, ids, known
		}
		ids = append(ids, uint32(id))
	}
}

// TestAnswers compares the answers of all forms with the oracle's: addresses of both families, in no order, of two
// goroutines. An address with a zone and the zero Addr are among them.
func TestAnswers(t *testing.T) {
	table, ids, known := numbered(t, nested(1, 4000))
	live := must(NewLive(Options{}))
	routes := make([]Route, 0, len(known))
	for prefix, number := range known {
		routes = append(routes, Route{prefix, uint64(number)})
	}
	if err := live.Set(routes...); err != nil {
		t.Fatal(err)
	}
	if table.Routes() != len(known) || live.Count(4)+live.Count(6) != len(known) || len(ids) != len(known) {
		t.Fatalf("%d routes, %d and %d, %d rows of %d", table.Routes(), live.Count(4), live.Count(6), len(ids), len(known))
	}
	spans := append(known.spans(true), known.spans(false)...)
	covered := 0
	for _, span := range spans {
		if span.expected != None {
			covered++
		}
	}
	if covered < len(spans)/2 || covered == len(spans) {
		t.Fatalf("%d of %d spans are covered", covered, len(spans))
	}
	var wait sync.WaitGroup
	for worker := range 2 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			compared(t, table, ids, live, spans, rand.New(rand.NewPCG(uint64(worker), 1)), *manyAnswers/2)
		}()
	}
	wait.Wait()
}

// compared compares so many answers; each block of addresses is looked up in the file and in the live table.
func compared(t *testing.T, table *Table, ids []uint32, live *Live, spans []span, random *rand.Rand, count int) {
	const size = 3000 // no multiple of the block
	reader := live.Reader()
	addrs, expected := make([]netip.Addr, size), make([]uint32, size)
	v4, expected4 := make([]uint32, 0, size), make([]uint32, 0, size)
	v6, expected6 := make([][16]byte, 0, size), make([]uint32, 0, size)
	rows, values, wide := make([]uint32, size), make([]uint32, size), make([]uint64, size)
	is := func(form string, found, expected uint32, addr any) bool {
		if found != expected {
			t.Errorf("%s: %v is of %d, not %d", form, addr, found, expected)
		}
		return found == expected
	}
	id := func(row uint32) uint32 {
		if row == None {
			return None
		}
		return ids[row]
	}
	for done := 0; done < count; {
		v4, v6, expected4, expected6 = v4[:0], v6[:0], expected4[:0], expected6[:0]
		for at := range addrs {
			span := spans[random.IntN(len(spans))]
			number := span.first.plus(upTo(span.size, random))
			addrs[at], expected[at] = addrOf(number, span.is4), span.expected
			if span.is4 {
				v4, expected4 = append(v4, uint32(number.low)), append(expected4, span.expected)
			} else {
				v6, expected6 = append(v6, bytesOf(number)), append(expected6, span.expected)
			}
		}
		bad := random.IntN(size - 1)
		addrs[bad], expected[bad] = netip.Addr{}, None
		addrs[bad+1], expected[bad+1] = netip.MustParseAddr("fe80::1%eth0"), None
		table.LookupBatch(addrs, rows)
		reader.LookupBatch(addrs, wide)
		for at, addr := range addrs {
			if !is("LookupBatch", id(rows[at]), expected[at], addr) ||
				!is("Reader.LookupBatch", uint32(wide[at]), expected[at], addr) {
				return
			}
			if at%64 == 0 {
				row, _ := table.Lookup(addr)
				value, _ := live.Lookup(addr)
				if !is("Lookup", id(row), expected[at], addr) || !is("Live.Lookup", uint32(value), expected[at], addr) {
					return
				}
			}
		}
		table.Lookup4(v4, rows)
		reader.Lookup4(v4, values)
		for at, addr := range v4 {
			if !is("Lookup4", id(rows[at]), expected4[at], addr) || !is("Reader.Lookup4", values[at], expected4[at], addr) {
				return
			}
		}
		table.Lookup6(v6, rows)
		reader.Lookup6(v6, values)
		for at, addr := range v6 {
			if !is("Lookup6", id(rows[at]), expected6[at], addr) || !is("Reader.Lookup6", values[at], expected6[at], addr) {
				return
			}
		}
		done += 2 * (len(addrs) + len(v4) + len(v6))
	}
}

// TestMatch compares matched prefixes and the routes that cover an address with the oracle's.
func TestMatch(t *testing.T) {
	table, ids, known := numbered(t, nested(2, 500))
	live := must(NewLive(Options{}))
	for prefix, number := range known {
		if err := live.Set(Route{prefix, uint64(number)}); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(3, 3))
	for _, span := range append(known.spans(true), known.spans(false)...) {
		addr := addrOf(span.first.plus(upTo(span.size, random)), span.is4)
		number, expected, ok := known.lookup(addr)
		prefix, row, found := table.Match(addr)
		route, is := live.Match(addr)
		if found != ok || is != ok {
			t.Fatalf("%v: %v and %v, not %v", addr, found, is, ok)
		}
		if !ok {
			continue
		}
		if prefix != expected || ids[row] != uint32(number) || route != (Route{expected, uint64(number)}) {
			t.Fatalf("%v: %v of %d, and %v, not %v", addr, prefix, ids[row], route, expected)
		}
		covering := must(live.Covering(netip.PrefixFrom(addr, addr.BitLen())))
		var lengths []netip.Prefix
		for length := addr.BitLen(); length >= 0; length-- {
			if of := must(addr.Prefix(length)); isIn(known, of) {
				lengths = append(lengths, of)
			}
		}
		if len(covering) != len(lengths) {
			t.Fatalf("%v: %v cover it, not %v", addr, covering, lengths)
		}
		for at, route := range covering {
			if route.Prefix != lengths[at] || route.Value != uint64(known[route.Prefix]) {
				t.Fatalf("%v: %v covers it, not %v", addr, route, lengths[at])
			}
		}
	}
}

func isIn(known oracle, prefix netip.Prefix) bool { _, ok := known[prefix]; return ok }
