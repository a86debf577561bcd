package fibula

/*
#cgo noescape fibula_text
#cgo nocallback fibula_text
#cgo noescape fibula_number
#cgo nocallback fibula_number
#include <fibula.h>

// The first row that has a value; FIBULA_NONE if none has.
static uint32_t go_first_value(const fibula_table *table, size_t column) {
    char text[1];
    for (uint32_t row = 0;; row++) {
        size_t length = fibula_text(table, column, row, text, sizeof text);
        if (length == SIZE_MAX) return FIBULA_NONE;
        if (length != 0) return row;
    }
}
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// A Column has a value for each row of a table. It stays valid when the table is closed.
type Column struct {
	handle   *tableHandle
	number   C.size_t
	name     string
	isNumber bool
}

// Columns returns the names of all columns.
func (t *Table) Columns() []string {
	handle := t.handle()
	defer runtime.KeepAlive(handle)
	names := make([]string, C.fibula_columns(handle.c))
	for at := range names {
		names[at], _ = text(func(to *C.char, size C.size_t) C.size_t {
			return C.fibula_column_name(handle.c, C.size_t(at), to, size)
		})
	}
	return names
}

// Column returns the column with this name. The error for an unknown one has the names that there are.
func (t *Table) Column(name string) (*Column, error) {
	handle := t.handle()
	defer runtime.KeepAlive(handle)
	column := &Column{handle: handle, name: name}
	err := withText(name, "the column's name", func(name *C.char) error {
		return try(func() bool {
			column.number = C.fibula_column(handle.c, name)
			return column.number != ^C.size_t(0)
		})
	})
	if err != nil {
		return nil, err
	}
	// All values of a column are numbers, or all are texts.
	if first := C.go_first_value(handle.c, column.number); uint32(first) != None {
		var number C.uint64_t
		column.isNumber = bool(C.fibula_number(handle.c, column.number, first, &number))
	}
	return column, nil
}

// Name returns the name of the column.
func (c *Column) Name() string { return c.name }

// IsNumber says whether the values are numbers.
func (c *Column) IsNumber() bool { return c.isNumber }

// Text returns the value of a row, numbers in decimal; "" if there is no value or no such row, as [None] is none.
func (c *Column) Text(row uint32) string {
	if row == None {
		return ""
	}
	var short [120]byte // most texts, without memory of the heap
	to, size := (*C.char)(unsafe.Pointer(&short[0])), C.size_t(len(short))
	length := C.fibula_text(c.handle.c, c.number, C.uint32_t(row), to, size)
	found := ""
	if length < size {
		found = string(short[:length])
	} else if length != ^C.size_t(0) {
		found, _ = c.read(row)
	}
	runtime.KeepAlive(c)
	return found
}

// read reads a value of any length; false if there is no such row.
func (c *Column) read(row uint32) (string, bool) {
	return text(func(to *C.char, size C.size_t) C.size_t {
		return C.fibula_text(c.handle.c, c.number, C.uint32_t(row), to, size)
	})
}

// Number returns the value of a row; false if it is not a number, or there is no value or no such row.
func (c *Column) Number(row uint32) (number uint64, ok bool) {
	if row == None || !c.isNumber {
		return 0, false
	}
	var found C.uint64_t
	ok = bool(C.fibula_number(c.handle.c, c.number, C.uint32_t(row), &found))
	runtime.KeepAlive(c)
	return uint64(found), ok
}

// Texts returns the values of all rows, as [Column.Text] does: the element at a row is its value. A loop that takes its
// values from the slice calls C for none of them. Equal values share their memory.
func (c *Column) Texts() []string {
	var texts []string
	known := make(map[string]string)
	for row := uint32(0); ; row++ {
		found, ok := c.read(row)
		if !ok {
			runtime.KeepAlive(c)
			return texts
		}
		value, is := known[found]
		if !is {
			value, known[found] = found, found
		}
		texts = append(texts, value)
	}
}
