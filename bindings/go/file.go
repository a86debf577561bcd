package fibula

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A File is a table that follows its file: when the file is replaced, as `fibula build` and [Live.Save] do it, the
// table is the new one. There is always a whole table: if the new file cannot be opened, the one before stays.
type File struct {
	path  string
	every time.Duration
	table atomic.Pointer[Table]
	next  atomic.Int64 // when the file is looked at again

	lock sync.Mutex // of those who look at it
	seen os.FileInfo
	bad  error // of the last look
}

// start is what times are counted from.
var start = time.Now()

// OpenFile opens a file that is looked at again when it is used and `every` has passed since the last look; with 0,
// each time.
func OpenFile(path string, every time.Duration) (*File, error) {
	file := &File{path: path, every: every}
	if _, err := file.look(); err != nil {
		return nil, err
	}
	return file, nil
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Table returns the table of now, looking at the file if it is time. An error is that of a new file, and is returned
// once; the table is that of the file before then. A table that was returned stays valid.
func (f *File) Table() (*Table, error) {
	if time.Since(start) < time.Duration(f.next.Load()) || !f.lock.TryLock() {
		return f.table.Load(), nil
	}
	defer f.lock.Unlock()
	return f.looked()
}

// Reload looks at the file now, as [File.Table] does.
func (f *File) Reload() (*Table, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.looked()
}

func (f *File) looked() (*Table, error) {
	isNew, err := f.look()
	if err != nil && !isNew && f.bad != nil && f.bad.Error() == err.Error() {
		return f.table.Load(), nil // it is absent as before
	}
	f.bad = err
	return f.table.Load(), err
}

// look opens the file if it is not the one that was seen. What is seen is taken before it is opened: a file that is
// replaced in between is opened once more.
func (f *File) look() (isNew bool, err error) {
	f.next.Store(int64(time.Since(start) + f.every))
	seen, absent := os.Stat(f.path)
	isNew = absent == nil
	if isNew && f.seen != nil && isSame(f.seen, seen) {
		return false, nil
	}
	f.seen = seen
	// If it is absent, this says so.
	table, err := Open(f.path)
	if err != nil {
		return isNew, err
	}
	f.table.Store(table)
	return isNew, nil
}

func isSame(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
