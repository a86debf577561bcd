package fibula

/*
#cgo noescape fibula_live_set
#cgo nocallback fibula_live_set
#cgo noescape fibula_live_remove
#cgo nocallback fibula_live_remove
#include <stdlib.h>
#include <fibula.h>
*/
import "C"

import (
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// A Live is a table of routes with a number each, which changes while any number of goroutines read it without locks.
type Live struct {
	opened  atomic.Pointer[liveHandle]
	readers sync.Pool // of *Reader, for Lookup
}

// A liveHandle owns the table of C, or keeps the table alive that owns this one, of a VRF.
type liveHandle struct {
	c    *C.fibula_live
	main *liveHandle
}

// A Route is a prefix and its value: a number of your own, such as an index into a slice.
type Route struct {
	Prefix netip.Prefix
	Value  uint64
}

// Options are what a [Live] is made with. The zero Options are those of most programs.
type Options struct {
	// Collect is how long a change waits for others, in whole milliseconds; with 0, it is visible when its call
	// returns.
	Collect time.Duration
	// Wide is for values of 64 bits. Without it they are below 2^32 - 1.
	Wide bool
	// Default is the value of addresses without a route, if it is not nil.
	Default *uint64
	// Engine is the engine's name; "" for the one that suits the routes, again as they change.
	Engine string
}

// NewLive makes a table without routes.
func NewLive(options Options) (*Live, error) {
	// Part of a millisecond is not none.
	collect := (options.Collect + time.Millisecond - 1) / time.Millisecond
	if options.Collect < 0 || collect > math.MaxUint32 {
		text := fmt.Sprintf("Collect is %v; it is at least 0, and 1 to 50 ms are good values", options.Collect)
		return nil, &Error{Text: text}
	}
	given := C.fibula_options{size: C.size_t(C.sizeof_fibula_options), collect_ms: C.uint32_t(collect)}
	given.default_value = C.FIBULA_NONE64
	if options.Default != nil {
		given.default_value = C.uint64_t(*options.Default)
	}
	if options.Wide {
		given.flags = C.FIBULA_WIDE
	}
	handle := new(liveHandle)
	err := withText(options.Engine, "the engine's name", func(engine *C.char) error {
		if options.Engine != "" {
			given.engine = engine
		}
		return try(func() bool {
			handle.c = C.fibula_live_with(&given)
			return handle.c != nil
		})
	})
	if err != nil {
		return nil, err
	}
	runtime.AddCleanup(handle, func(c *C.fibula_live) { C.fibula_live_free(c) }, handle.c)
	return liveOf(handle), nil
}

func liveOf(handle *liveHandle) *Live {
	live := new(Live)
	live.opened.Store(handle)
	return live
}

// VRF returns the table of a VRF, which is made if there is none with this number; 0 is the table itself. All tables of
// a Live have its options and share its thread. A VRF lives as long as the first table.
func (l *Live) VRF(number uint32) (*Live, error) {
	handle := l.handle()
	vrf := &liveHandle{main: handle}
	err := try(func() bool {
		vrf.c = C.fibula_live_vrf(handle.c, C.uint32_t(number))
		return vrf.c != nil
	})
	runtime.KeepAlive(handle)
	if err != nil {
		return nil, err
	}
	return liveOf(vrf), nil
}

// Close says that this table is not used any more. Its memory is freed by the garbage collector, once no call, no VRF
// and no [Reader] uses it. A program need not call it. The error is nil.
func (l *Live) Close() error {
	l.opened.Store(nil)
	return nil
}

func (l *Live) handle() *liveHandle {
	handle := l.opened.Load()
	if handle == nil {
		panic("fibula: the live table is closed; close it after the last call")
	}
	return handle
}

// Set adds routes, or gives those that are there other values; of two routes of a prefix the last one counts. All of
// them are one change, and a table is loaded fastest by one call. If one is wrong, nothing is changed. There is also an
// error if the routes are taken, but no engine takes the table: readers keep the one before, and the next call tries
// again. If changes are collected, only [Live.Flush] can report that.
func (l *Live) Set(routes ...Route) error {
	given := make([]C.fibula_route, len(routes))
	for at, route := range routes {
		if err := write(&given[at], route); err != nil {
			return err
		}
	}
	return l.change(func(live *C.fibula_live) bool {
		return bool(C.fibula_live_set(live, unsafe.SliceData(given), C.size_t(len(given))))
	})
}

// Remove removes the routes with these prefixes; prefixes without a route are passed over. Otherwise it is like
// [Live.Set].
func (l *Live) Remove(prefixes ...netip.Prefix) error {
	given := make([]C.fibula_route, len(prefixes))
	for at, prefix := range prefixes {
		if err := write(&given[at], Route{Prefix: prefix}); err != nil {
			return err
		}
	}
	return l.change(func(live *C.fibula_live) bool {
		return bool(C.fibula_live_remove(live, unsafe.SliceData(given), C.size_t(len(given))))
	})
}

// Flush makes all changes so far visible now.
func (l *Live) Flush() error {
	return l.change(func(live *C.fibula_live) bool { return bool(C.fibula_live_flush(live)) })
}

// Load adds the routes of a file of `fibula build` or [Live.Save], with their values in a column of numbers; "" for the
// column "value".
func (l *Live) Load(path, column string) error {
	if column == "" {
		column = "value"
	}
	err := withText(path, "the path", func(path *C.char) error {
		return withText(column, "the column's name", func(column *C.char) error {
			return l.change(func(live *C.fibula_live) bool { return bool(C.fibula_live_load(live, path, column)) })
		})
	})
	return ofFile(err, path)
}

// Save writes the routes, as the column "value", to a file, which [Open] opens; it is replaced at once.
func (l *Live) Save(path string) error {
	return withText(path, "the path", func(path *C.char) error {
		return l.change(func(live *C.fibula_live) bool { return bool(C.fibula_live_save(live, path)) })
	})
}

func (l *Live) change(call func(*C.fibula_live) bool) error {
	handle := l.handle()
	defer runtime.KeepAlive(handle)
	return try(func() bool { return call(handle.c) })
}

// Changes returns the number of changes taken, and Visible how many of them readers see: once the second has reached
// what the first was after a call, the change of that call is visible.
func (l *Live) Changes() uint64 {
	handle := l.handle()
	defer runtime.KeepAlive(handle)
	return uint64(C.fibula_live_changes(handle.c))
}

// Visible: see [Live.Changes].
func (l *Live) Visible() uint64 {
	handle := l.handle()
	defer runtime.KeepAlive(handle)
	return uint64(C.fibula_live_visible(handle.c))
}

// Wait waits until a change is visible, and returns false if it is not after that time.
func (l *Live) Wait(change uint64, atMost time.Duration) bool {
	handle := l.handle()
	defer runtime.KeepAlive(handle)
	most := min(max(atMost.Milliseconds(), 0), math.MaxUint32)
	return bool(C.fibula_live_wait(handle.c, C.uint64_t(change), C.uint32_t(most)))
}
