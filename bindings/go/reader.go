package fibula

/*
#cgo noescape fibula_reader_lookup4
#cgo nocallback fibula_reader_lookup4
#cgo noescape fibula_reader_lookup6
#cgo nocallback fibula_reader_lookup6
#cgo noescape fibula_reader_wide4
#cgo nocallback fibula_reader_wide4
#cgo noescape fibula_reader_wide6
#cgo nocallback fibula_reader_wide6
#cgo nocallback go_wide
#include <fibula.h>

// The value of one address; then the reader gives its tables back.
static uint64_t go_wide(fibula_reader *reader, bool is_v4, uint64_t high, uint64_t low) {
    uint64_t value;
    if (is_v4) {
        uint32_t address = (uint32_t)low;
        fibula_reader_wide4(reader, &address, &value, 1);
    } else {
        unsigned char bytes[16];
        for (int i = 0; i < 8; i++) {
            bytes[i] = (unsigned char)(high >> (56 - 8 * i));
            bytes[8 + i] = (unsigned char)(low >> (56 - 8 * i));
        }
        fibula_reader_wide6(reader, bytes, &value, 1);
    }
    fibula_reader_release(reader);
    return value;
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

// A Reader looks batches up in a [Live]. It is for one goroutine at a time: each has its own, whatever thread it runs
// on. A call that begins while another one runs panics. All addresses of a call of C are looked up in one state of the
// table, and a reader never goes back to an earlier one; [Reader.LookupBatch] makes a call for each 1,024 addresses and
// each family.
type Reader struct {
	c      *C.fibula_reader
	isBusy atomic.Bool
}

// Reader makes a reader. It stays valid when the table is closed, and then has its last state.
func (l *Live) Reader() *Reader {
	handle := l.handle()
	defer runtime.KeepAlive(handle)
	reader := &Reader{c: C.fibula_reader_new(handle.c)}
	if reader.c == nil {
		panic("fibula: " + C.GoString(C.fibula_error()))
	}
	runtime.AddCleanup(reader, func(c *C.fibula_reader) { C.fibula_reader_free(c) }, reader.c)
	return reader
}

// Lookup returns the value of the longest prefix that covers the address; false, and [NoValue] or the default value, if
// there is none. Any number of goroutines may call it. It is for single addresses: a [Reader] is for batches.
func (l *Live) Lookup(addr netip.Addr) (value uint64, ok bool) {
	// Readers are kept, but not in a table that is closed.
	handle := l.handle()
	if !isOfTables(addr) {
		return NoValue, false
	}
	reader, _ := l.readers.Get().(*Reader)
	if reader == nil {
		reader = l.Reader()
	}
	var high, low uint64
	is4 := addr.Is4() || addr.Is4In6()
	if is4 {
		low = uint64(number4(addr))
	} else {
		bytes := addr.As16()
		high, low = binary.BigEndian.Uint64(bytes[:8]), binary.BigEndian.Uint64(bytes[8:])
	}
	value = uint64(C.go_wide(reader.c, C.bool(is4), C.uint64_t(high), C.uint64_t(low)))
	l.readers.Put(reader)
	runtime.KeepAlive(handle)
	return value, value != NoValue
}

// use marks the reader as used, and returns what ends that.
func (r *Reader) use() {
	if !r.isBusy.CompareAndSwap(false, true) {
		panic("fibula: two goroutines use one Reader at once; make one for each")
	}
}

func (r *Reader) done() { r.isBusy.Store(false) }

// LookupBatch writes the value of each address; [NoValue], or the default value, if no route covers it, and NoValue if
// it is no address that a table can have. values has at least as many elements as addrs.
func (r *Reader) LookupBatch(addrs []netip.Addr, values []uint64) {
	values = values[:len(addrs)]
	r.use()
	defer r.done()
	inBatches(addrs, values, NoValue, r.wide4, r.wide6)
}

// Lookup4 is the fastest form for IPv4, of addresses as numbers (192.0.2.1 is 0xc0000201) and values of 32 bits;
// [None], or the default value, if no route covers one.
func (r *Reader) Lookup4(addrs, values []uint32) {
	values = values[:len(addrs)]
	r.use()
	defer r.done()
	from, to := (*C.uint32_t)(unsafe.SliceData(addrs)), (*C.uint32_t)(unsafe.SliceData(values))
	C.fibula_reader_lookup4(r.c, from, to, C.size_t(len(addrs)))
}

// Lookup6 is the fastest form for IPv6, of addresses in network byte order, of which mapped ones are not converted.
func (r *Reader) Lookup6(addrs [][16]byte, values []uint32) {
	values = values[:len(addrs)]
	r.use()
	defer r.done()
	from, to := unsafe.Pointer(unsafe.SliceData(addrs)), (*C.uint32_t)(unsafe.SliceData(values))
	C.fibula_reader_lookup6(r.c, from, to, C.size_t(len(addrs)))
}

// Wide4 is Lookup4 with values of 64 bits, of which [NoValue] is none.
func (r *Reader) Wide4(addrs []uint32, values []uint64) {
	values = values[:len(addrs)]
	r.use()
	defer r.done()
	r.wide4(addrs, values)
}

// Wide6 is Lookup6 with values of 64 bits, of which [NoValue] is none.
func (r *Reader) Wide6(addrs [][16]byte, values []uint64) {
	values = values[:len(addrs)]
	r.use()
	defer r.done()
	r.wide6(addrs, values)
}

func (r *Reader) wide4(addrs []uint32, values []uint64) {
	from, to := (*C.uint32_t)(unsafe.SliceData(addrs)), (*C.uint64_t)(unsafe.SliceData(values))
	C.fibula_reader_wide4(r.c, from, to, C.size_t(len(addrs)))
}

func (r *Reader) wide6(addrs [][16]byte, values []uint64) {
	from, to := unsafe.Pointer(unsafe.SliceData(addrs)), (*C.uint64_t)(unsafe.SliceData(values))
	C.fibula_reader_wide6(r.c, from, to, C.size_t(len(addrs)))
}

// Keep sets whether the reader keeps its tables from call to call until [Reader.Release], for several batches in one
// state of the table. Otherwise each call takes the newest.
func (r *Reader) Keep(keep bool) {
	r.use()
	defer r.done()
	C.fibula_reader_keep(r.c, C.bool(keep))
}

// Release gives the tables back that the reader holds, at most one of each family. A reader that pauses calls it, or an
// old table stays in memory; nothing waits for it.
func (r *Reader) Release() {
	r.use()
	defer r.done()
	C.fibula_reader_release(r.c)
}
