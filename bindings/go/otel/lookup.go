package fibulaprocessor

import (
	"math"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	fibula "fibula.example/bindings/go"
)

// A lookup is one of the configuration, with its table.
type lookup struct {
	config       Lookup
	isOfResource bool
	file         *fibula.File
	logger       *zap.Logger
	view         atomic.Pointer[view]
	refused      atomic.Pointer[fibula.Table] // a newer table that lacks a column
}

// cached is the number of rows whose values are kept. Logs have the same few again and again.
const cached = 1 << 12

// A view is a table with the columns that a lookup adds.
type view struct {
	table   *fibula.Table
	columns []*fibula.Column
	names   []string // of the attributes
	rows    [cached]atomic.Pointer[rowValues]
}

// rowValues are the values of a row; those that are missing have an empty type.
type rowValues struct {
	row    uint32
	values []any // nil, int64 or string
}

func newLookup(config Lookup, file *fibula.File, logger *zap.Logger) (*lookup, error) {
	l := &lookup{config: config, isOfResource: config.Context == ofResource, file: file, logger: logger}
	table, err := file.Table()
	if err != nil {
		return nil, err
	}
	first, err := newView(config, table)
	if err != nil {
		return nil, err
	}
	l.view.Store(first)
	return l, nil
}

func newView(config Lookup, table *fibula.Table) (*view, error) {
	names := config.Columns
	if len(names) == 0 {
		names = table.Columns()
	}
	v := &view{table: table}
	for _, name := range names {
		column, err := table.Column(name)
		if err != nil {
			return nil, err
		}
		v.columns = append(v.columns, column)
		v.names = append(v.names, config.Prefix+name)
	}
	return v, nil
}

// now is the view of the table of now. A new file that cannot be used leaves the one before, and is reported once.
func (l *lookup) now() *view {
	table, err := l.file.Table()
	if err != nil {
		l.logger.Warn("The table's new file cannot be opened; the one before stays in use.", l.name(), zap.Error(err))
	}
	current := l.view.Load()
	if table == current.table || table == l.refused.Load() {
		return current
	}
	next, err := newView(l.config, table)
	if err != nil {
		if l.refused.Swap(table) != table {
			l.logger.Warn("The table's new file lacks a column; the one before stays in use.", l.name(), zap.Error(err))
		}
		return current
	}
	if l.view.CompareAndSwap(current, next) {
		l.logger.Info("The table's new file is in use.", l.name(), zap.Int("prefixes", table.Routes()))
	}
	return next
}

func (l *lookup) name() zap.Field { return zap.String("table", l.config.Table) }

// of returns the values of a row.
func (v *view) of(row uint32) []any {
	slot := &v.rows[row%cached]
	if found := slot.Load(); found != nil && found.row == row {
		return found.values
	}
	values := make([]any, len(v.columns))
	for at, column := range v.columns {
		if column.IsNumber() {
			if number, ok := column.Number(row); ok && number <= math.MaxInt64 {
				values[at] = int64(number)
			} else if ok {
				values[at] = strconv.FormatUint(number, 10)
			}
		} else if text := column.Text(row); text != "" {
			values[at] = text
		}
	}
	slot.Store(&rowValues{row, values})
	return values
}

// addresses are those of some records, which are looked up together.
type addresses struct {
	*lookup
	view  *view
	addrs []netip.Addr
	maps  []pcommon.Map
	rows  []uint32
}

// together is the number of addresses that are looked up at once: more is not faster.
const together = 1024

var pool = sync.Pool{New: func() any {
	return &addresses{
		addrs: make([]netip.Addr, 0, together), maps: make([]pcommon.Map, 0, together), rows: make([]uint32, together),
	}
}}

// begin begins a batch, whose answers are all of one table.
func (l *lookup) begin() *addresses {
	a := pool.Get().(*addresses)
	a.lookup, a.view = l, l.now()
	return a
}

// add takes the attributes of a record, which get their values at some time before the end.
func (a *addresses) add(attributes pcommon.Map) {
	for _, name := range a.config.From {
		value, ok := attributes.Get(name)
		if !ok {
			continue
		}
		addr, ok := addressOf(value)
		if !ok {
			continue
		}
		a.addrs, a.maps = append(a.addrs, addr), append(a.maps, attributes)
		if len(a.addrs) == together {
			a.flush()
		}
		return
	}
}

// end does what is left to do.
func (a *addresses) end() {
	a.flush()
	a.lookup, a.view = nil, nil
	pool.Put(a)
}

func (a *addresses) flush() {
	a.view.table.LookupBatch(a.addrs, a.rows)
	for at, row := range a.rows[:len(a.addrs)] {
		if row == fibula.None {
			continue
		}
		attributes := a.maps[at]
		for column, value := range a.view.of(row) {
			switch value := value.(type) {
			case int64:
				attributes.PutInt(a.view.names[column], value)
			case string:
				attributes.PutStr(a.view.names[column], value)
			}
		}
		if a.config.Matched != "" {
			if prefix, _, ok := a.view.table.Match(a.addrs[at]); ok {
				attributes.PutStr(a.config.Matched, prefix.String())
			}
		}
	}
	clear(a.maps)
	a.addrs, a.maps = a.addrs[:0], a.maps[:0]
}

// addressOf is the address of an attribute: a text as in a log, or the bytes in network order.
func addressOf(value pcommon.Value) (netip.Addr, bool) {
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return fibula.ParseAddr(value.Str())
	case pcommon.ValueTypeBytes:
		addr, ok := netip.AddrFromSlice(value.Bytes().AsRaw())
		return addr.Unmap(), ok
	}
	return netip.Addr{}, false
}
