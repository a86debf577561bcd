package fibulaprocessor

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
)

// Config is the configuration of the processor.
type Config struct {
	// Lookups are done one after the other: a later one sees the attributes that earlier ones have added.
	Lookups []Lookup `mapstructure:"lookups"`
	// Reload is how often the tables' files are looked at. A file that was replaced is opened.
	Reload time.Duration `mapstructure:"reload"`
}

// Lookup says which address is looked up in which table, and what is added.
type Lookup struct {
	// Table is a file that `fibula build` wrote.
	Table string `mapstructure:"table"`
	// From has the names of attributes; the first one counts that is there and has an address.
	From []string `mapstructure:"from"`
	// Context says whose attributes these are, and get the values: those of each "record" (log record, span, data
	// point), or those of the "resource".
	Context string `mapstructure:"context"`
	// Prefix is put before the names of columns, for those of the attributes that are added.
	Prefix string `mapstructure:"prefix"`
	// Columns are the table's columns that are added; all of them if there is none here.
	Columns []string `mapstructure:"columns"`
	// Matched is the name of an attribute for the prefix that covers the address; "" for none.
	Matched string `mapstructure:"matched"`
}

const (
	ofRecord   = "record"
	ofResource = "resource"
)

var _ component.Config = (*Config)(nil)

// Validate reports all that is wrong.
func (c *Config) Validate() error {
	var wrong []error
	if len(c.Lookups) == 0 {
		wrong = append(wrong, errors.New("lookups: there is none; give at least a table and the attributes to look up"))
	}
	for at, lookup := range c.Lookups {
		say := func(field, what string) {
			wrong = append(wrong, fmt.Errorf("lookups[%d].%s: %s", at, field, what))
		}
		if lookup.Table == "" {
			say("table", "name a file that `fibula build` wrote")
		}
		if len(lookup.From) == 0 {
			say("from", "name at least one attribute that has addresses")
		}
		switch lookup.Context {
		case "", ofRecord, ofResource:
		default:
			say("context", fmt.Sprintf("it is %q; %q or %q is known", lookup.Context, ofRecord, ofResource))
		}
	}
	if c.Reload < 0 {
		wrong = append(wrong, fmt.Errorf("reload: it is %v; 0 is at each batch", c.Reload))
	}
	return errors.Join(wrong...)
}
