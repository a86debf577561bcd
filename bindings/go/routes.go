package fibula

/*
#cgo noescape fibula_live_find
#cgo nocallback fibula_live_find
#cgo noescape fibula_live_match
#cgo nocallback fibula_live_match
#cgo noescape fibula_live_covering
#cgo nocallback fibula_live_covering
#cgo noescape fibula_live_walk
#cgo nocallback fibula_live_walk
#include <fibula.h>
*/
import "C"

import (
	"fmt"
	"iter"
	"net/netip"
	"runtime"
	"time"
	"unsafe"
)

// write writes a route as C has it. A prefix of IPv4-mapped addresses is one of IPv4, as its addresses are.
func write(to *C.fibula_route, route Route) error {
	prefix := route.Prefix
	if !prefix.IsValid() {
		return &Error{Text: fmt.Sprintf("the prefix is not valid: %v", prefix)}
	}
	if addr := prefix.Addr(); addr.Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
	}
	family, bytes := family(prefix.Addr())
	for at, value := range bytes {
		to.address[at] = C.uint8_t(value)
	}
	to.family, to.length, to.value = C.uint8_t(family), C.uint8_t(prefix.Bits()), C.uint64_t(route.Value)
	return nil
}

func routeOf(route *C.fibula_route) Route {
	return Route{Prefix: prefixOf(route), Value: uint64(route.value)}
}

// Count returns the number of routes of a family, 4 or 6; 0 if there is no such family.
func (l *Live) Count(family int) int {
	handle := l.handle()
	defer runtime.KeepAlive(handle)
	count := C.fibula_live_count(handle.c, cFamily(family))
	if count == ^C.size_t(0) {
		return 0
	}
	return int(count)
}

// Find returns the value of exactly this prefix. Like the other questions about routes, it includes changes that
// readers do not see yet.
func (l *Live) Find(prefix netip.Prefix) (value uint64, ok bool) {
	var route C.fibula_route
	if write(&route, Route{Prefix: prefix}) != nil {
		return 0, false
	}
	handle := l.handle()
	ok = bool(C.fibula_live_find(handle.c, &route))
	runtime.KeepAlive(handle)
	if !ok {
		return 0, false
	}
	return uint64(route.value), true
}

// Match returns the route with the longest prefix that covers the address.
func (l *Live) Match(addr netip.Addr) (route Route, ok bool) {
	if !isOfTables(addr) {
		return Route{}, false
	}
	handle := l.handle()
	family, bytes := family(addr.Unmap())
	var found C.fibula_route
	ok = bool(C.fibula_live_match(handle.c, C.uint8_t(family), unsafe.Pointer(&bytes), &found))
	runtime.KeepAlive(handle)
	if !ok {
		return Route{}, false
	}
	return routeOf(&found), true
}

// Covering returns the routes that cover the prefix, its own included, longest first.
func (l *Live) Covering(prefix netip.Prefix) ([]Route, error) {
	var of C.fibula_route
	if err := write(&of, Route{Prefix: prefix}); err != nil {
		return nil, err
	}
	var room [129]C.fibula_route // one for each length
	var count C.size_t
	err := l.change(func(live *C.fibula_live) bool {
		count = C.fibula_live_covering(live, &of, &room[0], C.size_t(len(room)))
		return count != ^C.size_t(0)
	})
	if err != nil {
		return nil, err
	}
	routes := make([]Route, count)
	for at := range routes {
		routes[at] = routeOf(&room[at])
	}
	return routes, nil
}

// Walk goes through the routes within a prefix, its own included, in order of address and length. The table may change
// in between. A prefix that is none has no routes.
func (l *Live) Walk(within netip.Prefix) iter.Seq[Route] {
	return func(yield func(Route) bool) {
		var of C.fibula_route
		if write(&of, Route{Prefix: within}) != nil {
			return
		}
		room := make([]C.fibula_route, 256)
		var after *C.fibula_route
		for {
			handle := l.handle()
			count := C.fibula_live_walk(handle.c, &of, after, &room[0], C.size_t(len(room)))
			runtime.KeepAlive(handle)
			if count == ^C.size_t(0) {
				return
			}
			for at := range room[:count] {
				if !yield(routeOf(&room[at])) {
					return
				}
			}
			if int(count) < len(room) {
				return
			}
			last := room[count-1]
			after = &last
		}
	}
}

// Memory has the bytes of a table's parts.
type Memory struct {
	Routes uint64 // the routes, and changes that wait
	Values uint64 // of a Live: the values, each once
	Engine uint64 // the current engine
	Old    uint64 // engines that were replaced: a spare one, and those that readers hold
	Held   uint64 // number of tables that were replaced and that readers hold
}

func memoryOf(memory *C.fibula_memory) Memory {
	return Memory{
		Routes: uint64(memory.routes), Values: uint64(memory.values), Engine: uint64(memory.engine),
		Old: uint64(memory.old), Held: uint64(memory.held),
	}
}

// Memory returns the bytes of a family's parts.
func (l *Live) Memory(family int) Memory {
	handle := l.handle()
	defer runtime.KeepAlive(handle)
	var memory C.fibula_memory
	C.fibula_live_memory(handle.c, cFamily(family), &memory)
	return memoryOf(&memory)
}

// Engine says which engine answers for a family; "none" without routes.
func (l *Live) Engine(family int) string {
	handle := l.handle()
	defer runtime.KeepAlive(handle)
	found, _ := text(func(to *C.char, size C.size_t) C.size_t {
		return C.fibula_live_engine(handle.c, cFamily(family), to, size)
	})
	return found
}

// Counters say what a [Live] has done for a family.
type Counters struct {
	Changes     uint64        // routes set and prefixes removed
	Generations uint64        // states of the table that were published
	Builds      uint64        // of these, how many engines were built
	Patches     uint64        // and how many were the one before, patched
	Copies      uint64        // or a copy of the current one, patched, since a reader had the one before
	Failures    uint64        // how often no engine took the routes
	Making      time.Duration // time spent on all of it
	Oldest      time.Duration // how long the oldest change has waited that readers do not see yet; 0 if they see all
}

// Counters returns the counters of a family.
func (l *Live) Counters(family int) Counters {
	handle := l.handle()
	defer runtime.KeepAlive(handle)
	var c C.fibula_counters
	C.fibula_live_counters(handle.c, cFamily(family), &c)
	return Counters{
		Changes: uint64(c.changes), Generations: uint64(c.generations), Builds: uint64(c.builds),
		Patches: uint64(c.patches), Copies: uint64(c.copies), Failures: uint64(c.failures),
		Making: time.Duration(c.making_ns), Oldest: time.Duration(c.oldest_us) * time.Microsecond,
	}
}
