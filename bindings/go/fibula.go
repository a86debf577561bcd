// Package fibula answers "which prefix covers this address?" for IPv4 and IPv6, over fibula's C library.
//
// There are two kinds of tables:
//
//   - a [Table] is a file that `fibula build` wrote. It never changes. A lookup gives a row, whose values are in
//     columns. A [File] follows such a file when it is replaced;
//   - a [Live] has routes with a number each, and changes while any number of goroutines read it without locks.
//
// The library is found by pkg-config as `fibula` when a program is compiled, and by the system's loader when it runs.
//
// A call of C takes some dozen nanoseconds more than one of Go, so batches of 64 to 1,024 addresses are fastest.
//
// Addresses are those of [net/netip]. An IPv4-mapped address of IPv6 is looked up as the IPv4 address. No table has the
// zero Addr, nor an address with a zone, as no [netip.Prefix] contains them.
//
// All functions may be called by any number of goroutines at once, but for those of a [Reader]. Memory of the library
// is freed by the garbage collector, once nothing uses it. Close only says that a table is not used any more: calls
// that run at the time end as usual, and later ones panic.
package fibula

/*
#cgo pkg-config: fibula
#include <stdlib.h>
#include <fibula.h>
*/
import "C"

import (
	"os"
	"runtime"
	"strings"
	"unsafe"
)

// None is the row of an address that no prefix covers.
const None = ^uint32(0)

// NoValue is the value of an address that no route of a [Live] covers, where it has 64 bits.
const NoValue = ^uint64(0)

// Error is what a call reports that failed: the library's sentence, and the system's error behind it if there is one.
type Error struct {
	Text  string
	Cause error // of a file that cannot be read, such as fs.ErrNotExist; else nil
}

func (e *Error) Error() string { return "fibula: " + e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Version returns the version of the library, such as "0.1.0".
func Version() string { return C.GoString(C.fibula_version()) }

// try calls a function of C that can fail. The text of an error belongs to the thread in which the function failed.
func try(call func() bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if call() {
		return nil
	}
	return &Error{Text: C.GoString(C.fibula_error())}
}

// ofFile adds the cause of an error about a file.
func ofFile(err error, path string) error {
	failed, is := err.(*Error)
	if !is {
		return err
	}
	seen, cause := os.Stat(path)
	if cause == nil && seen.Mode().IsRegular() { // another one may let its reader wait
		var file *os.File
		if file, cause = os.Open(path); cause == nil {
			file.Close()
		}
	}
	failed.Cause = cause
	return err
}

// withText calls a function with a text of C. C would take a text with a NUL for a shorter one.
func withText(text, what string, call func(*C.char) error) error {
	if strings.IndexByte(text, 0) >= 0 {
		return &Error{Text: what + " has a NUL byte"}
	}
	copied := C.CString(text)
	defer C.free(unsafe.Pointer(copied))
	return call(copied)
}

// text is the result of a function that writes a text as snprintf does; false if it failed.
func text(write func(*C.char, C.size_t) C.size_t) (string, bool) {
	var short [120]byte
	length := write((*C.char)(unsafe.Pointer(&short[0])), C.size_t(len(short)))
	switch {
	case length == ^C.size_t(0):
		return "", false
	case length < C.size_t(len(short)):
		return string(short[:length]), true
	}
	long := make([]byte, length+1)
	write((*C.char)(unsafe.Pointer(&long[0])), C.size_t(len(long)))
	return string(long[:length]), true
}
