package fibula

/*
#include <fibula.h>
*/
import "C"

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"sync"
)

// ParseAddr reads the address of a cell of a log as the other commands and packages of fibula do: also with blanks
// around it, with a port ("192.0.2.1:443", "[2001:db8::1]:443"), in brackets, or as a prefix of the address alone. An
// IPv4-mapped address becomes the IPv4 address. A zone, or anything else, is no address.
func ParseAddr(cell string) (netip.Addr, bool) {
	cell = strings.Trim(cell, " \t\n\f\r")
	addr, err := netip.ParseAddr(cell)
	if err != nil {
		addr = parseAround(cell)
	}
	return addr.Unmap(), isOfTables(addr)
}

// parseAround reads an address with something around it; the zero one if there is none.
func parseAround(cell string) netip.Addr {
	if inside, is := strings.CutPrefix(cell, "["); is {
		if inside, is = strings.CutSuffix(inside, "]"); is {
			if addr, err := netip.ParseAddr(inside); err == nil && addr.Is6() {
				return addr
			}
			return netip.Addr{}
		}
	}
	if strings.HasSuffix(cell, "/32") || strings.HasSuffix(cell, "/128") {
		if prefix, err := netip.ParsePrefix(cell); err == nil && prefix.IsSingleIP() {
			return prefix.Addr()
		}
		return netip.Addr{}
	}
	// The zero AddrPort has the zero Addr.
	with, _ := netip.ParseAddrPort(cell)
	return with.Addr()
}

// isOfTables says whether a table can have the address.
func isOfTables(addr netip.Addr) bool { return addr.IsValid() && addr.Zone() == "" }

// number4 is an address of IPv4, mapped ones included, in host byte order.
func number4(addr netip.Addr) uint32 {
	bytes := addr.As4()
	return binary.BigEndian.Uint32(bytes[:])
}

// family is the family of an address and its bytes as C has them.
func family(addr netip.Addr) (family byte, bytes [16]byte) {
	if addr.Is4() {
		four := addr.As4()
		copy(bytes[:], four[:])
		return C.FIBULA_IPV4, bytes
	}
	return C.FIBULA_IPV6, addr.As16()
}

// cFamily is a family of C; one that there is not, if this is none.
func cFamily(family int) C.uint8_t {
	if family != C.FIBULA_IPV4 && family != C.FIBULA_IPV6 {
		return 0
	}
	return C.uint8_t(family)
}

// prefixOf is the prefix of a route of C.
func prefixOf(route *C.fibula_route) netip.Prefix {
	var bytes [16]byte
	for at := range bytes {
		bytes[at] = byte(route.address[at])
	}
	addr := netip.AddrFrom16(bytes)
	if route.family == C.FIBULA_IPV4 {
		addr = netip.AddrFrom4([4]byte(bytes[:4]))
	}
	return netip.PrefixFrom(addr, int(route.length))
}

// block is the most addresses of a call of C: more would not be faster.
const block = 1024

// A batch is a block of addresses by family, with their places among all.
type batch struct {
	v4         [block]uint32
	v6         [block][16]byte
	at4, at6   [block]uint16
	rows       [block]uint32
	wide       [block]uint64
	len4, len6 int
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// split takes the addresses, and reports whether all are of IPv4.
func (b *batch) split(addrs []netip.Addr) (isAll4 bool) {
	b.len4, b.len6 = 0, 0
	for at, addr := range addrs {
		switch {
		case addr.Is4() || addr.Is4In6() && addr.Zone() == "":
			b.v4[b.len4], b.at4[b.len4] = number4(addr), uint16(at)
			b.len4++
		case isOfTables(addr):
			b.v6[b.len6], b.at6[b.len6] = addr.As16(), uint16(at)
			b.len6++
		}
	}
	return b.len4 == len(addrs)
}

// answers is the room of a batch for answers of a type.
func answers[V uint32 | uint64](b *batch) []V {
	switch room := any(&b.rows).(type) {
	case *[block]V:
		return room[:]
	}
	return any(&b.wide).(*[block]V)[:]
}

// inBatches looks addresses up by functions for one family; no address that tables have gets the value `none`.
func inBatches[V uint32 | uint64](
	addrs []netip.Addr, out []V, none V, lookup4 func([]uint32, []V), lookup6 func([][16]byte, []V),
) {
	b := batches.Get().(*batch)
	defer batches.Put(b)
	found := answers[V](b)
	for len(addrs) > 0 {
		count := min(len(addrs), block)
		if b.split(addrs[:count]) {
			lookup4(b.v4[:count], out[:count])
		} else {
			if b.len4+b.len6 < count {
				for at := range out[:count] {
					out[at] = none
				}
			}
			lookup4(b.v4[:b.len4], found)
			for at, place := range b.at4[:b.len4] {
				out[place] = found[at]
			}
			lookup6(b.v6[:b.len6], found)
			for at, place := range b.at6[:b.len6] {
				out[place] = found[at]
			}
		}
		addrs, out = addrs[count:], out[count:]
	}
}
