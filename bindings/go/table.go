package fibula

/*
#cgo noescape fibula_lookup4
#cgo nocallback fibula_lookup4
#cgo noescape fibula_lookup6
#cgo nocallback fibula_lookup6
#cgo noescape fibula_match
#cgo nocallback fibula_match
#cgo nocallback go_lookup4
#cgo nocallback go_lookup6
#include <fibula.h>

// One address by value: a pointer to Go's memory is checked at each call.
static uint32_t go_lookup4(const fibula_table *table, uint32_t address) {
    uint32_t row;
    fibula_lookup4(table, &address, &row, 1);
    return row;
}

static uint32_t go_lookup6(const fibula_table *table, uint64_t high, uint64_t low) {
    unsigned char bytes[16];
    uint32_t row;
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(high >> (56 - 8 * i));
        bytes[8 + i] = (unsigned char)(low >> (56 - 8 * i));
    }
    fibula_lookup6(table, bytes, &row, 1);
    return row;
}
*/
import "C"

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// A Table is a file of `fibula build`, opened.
type Table struct {
	opened atomic.Pointer[tableHandle]
}

// A tableHandle owns the table of C, which is freed when nothing refers to the handle: whoever calls C keeps it alive.
type tableHandle struct {
	c *C.fibula_table
}

// Open opens a file, in milliseconds. Programs that open the same file share its memory. A file is replaced by renaming
// another one to its name; it must not be written to while it is open.
func Open(path string) (*Table, error) {
	var table *Table
	err := withText(path, "the path", func(path *C.char) (err error) {
		table, err = opened(func() *C.fibula_table { return C.fibula_open(path) })
		return err
	})
	return table, ofFile(err, path)
}

// OpenBytes opens the bytes of such a file, which are copied.
func OpenBytes(bytes []byte) (*Table, error) {
	return opened(func() *C.fibula_table {
		return C.fibula_open_memory(unsafe.Pointer(unsafe.SliceData(bytes)), C.size_t(len(bytes)))
	})
}

func opened(open func() *C.fibula_table) (*Table, error) {
	handle := new(tableHandle)
	err := try(func() bool {
		handle.c = open()
		return handle.c != nil
	})
	if err != nil {
		return nil, err
	}
	runtime.AddCleanup(handle, func(c *C.fibula_table) { C.fibula_close(c) }, handle.c)
	table := new(Table)
	table.opened.Store(handle)
	return table, nil
}

// Close says that the table is not used any more. Its memory is freed by the garbage collector, once no call and no
// [Column] uses it. A program need not call it. The error is nil.
func (t *Table) Close() error {
	t.opened.Store(nil)
	return nil
}

func (t *Table) handle() *tableHandle {
	handle := t.opened.Load()
	if handle == nil {
		panic("fibula: the table is closed; close it after the last call")
	}
	return handle
}

// Lookup returns the row of the longest prefix that covers the address; [None] and false if there is none.
func (t *Table) Lookup(addr netip.Addr) (row uint32, ok bool) {
	handle := t.handle()
	row = handle.lookup(addr)
	runtime.KeepAlive(handle)
	return row, row != None
}

func (h *tableHandle) lookup(addr netip.Addr) uint32 {
	if addr.Is4() || addr.Is4In6() && addr.Zone() == "" {
		return uint32(C.go_lookup4(h.c, C.uint32_t(number4(addr))))
	}
	if !isOfTables(addr) {
		return None
	}
	bytes := addr.As16()
	high, low := binary.BigEndian.Uint64(bytes[:8]), binary.BigEndian.Uint64(bytes[8:])
	return uint32(C.go_lookup6(h.c, C.uint64_t(high), C.uint64_t(low)))
}

// Match returns the longest prefix that covers the address, and its row. It takes a hundred times as long as a lookup
// in a batch.
func (t *Table) Match(addr netip.Addr) (prefix netip.Prefix, row uint32, ok bool) {
	if !isOfTables(addr) {
		return netip.Prefix{}, None, false
	}
	handle := t.handle()
	family, bytes := family(addr.Unmap())
	var route C.fibula_route
	ok = bool(C.fibula_match(handle.c, C.uint8_t(family), unsafe.Pointer(&bytes), &route))
	runtime.KeepAlive(handle)
	if !ok {
		return netip.Prefix{}, None, false
	}
	return prefixOf(&route), uint32(route.value), true
}

// LookupBatch writes the row of each address, or [None]; rows has at least as many elements as addrs.
func (t *Table) LookupBatch(addrs []netip.Addr, rows []uint32) {
	handle := t.handle()
	inBatches(addrs, rows[:len(addrs)], None, handle.lookup4, handle.lookup6)
	runtime.KeepAlive(handle)
}

// Lookup4 is the fastest form for IPv4, of addresses as numbers: 192.0.2.1 is 0xc0000201. All rows are written.
func (t *Table) Lookup4(addrs, rows []uint32) {
	handle := t.handle()
	handle.lookup4(addrs, rows[:len(addrs)])
	runtime.KeepAlive(handle)
}

// Lookup6 is the fastest form for IPv6, of addresses in network byte order, of which mapped ones are not converted.
func (t *Table) Lookup6(addrs [][16]byte, rows []uint32) {
	handle := t.handle()
	handle.lookup6(addrs, rows[:len(addrs)])
	runtime.KeepAlive(handle)
}

func (h *tableHandle) lookup4(addrs, rows []uint32) {
	from, to := (*C.uint32_t)(unsafe.SliceData(addrs)), (*C.uint32_t)(unsafe.SliceData(rows))
	C.fibula_lookup4(h.c, from, to, C.size_t(len(addrs)))
}

func (h *tableHandle) lookup6(addrs [][16]byte, rows []uint32) {
	from, to := unsafe.Pointer(unsafe.SliceData(addrs)), (*C.uint32_t)(unsafe.SliceData(rows))
	C.fibula_lookup6(h.c, from, to, C.size_t(len(addrs)))
}

// Routes returns the number of prefixes of both families.
func (t *Table) Routes() int {
	handle := t.handle()
	defer runtime.KeepAlive(handle)
	return int(C.fibula_routes(handle.c))
}

// Engine says which engine answers for a family, 4 or 6, and why; "" if there is no such family.
func (t *Table) Engine(family int) string {
	handle := t.handle()
	defer runtime.KeepAlive(handle)
	found, _ := text(func(to *C.char, size C.size_t) C.size_t {
		return C.fibula_engine(handle.c, cFamily(family), to, size)
	})
	return found
}

// Memory returns the bytes of a family's parts, which lie in the file if it is mapped.
func (t *Table) Memory(family int) Memory {
	handle := t.handle()
	defer runtime.KeepAlive(handle)
	var memory C.fibula_memory
	C.fibula_table_memory(handle.c, cFamily(family), &memory)
	return memoryOf(&memory)
}
