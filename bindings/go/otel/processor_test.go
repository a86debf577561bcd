package fibulaprocessor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	fibula "fibula.example/bindings/go"
)

const networks = "prefix,site,vlan\n10.0.0.0/8,hq,1\n10.20.0.0/16,zürich,18446744073709551615\n2001:db8::/32,hq,\n"

// built makes a table of CSV by the command that FIBULA_BIN names, in place of one that is there.
func built(t testing.TB, path, csv string) string {
	t.Helper()
	command := os.Getenv("FIBULA_BIN")
	if command == "" {
		t.Skip("FIBULA_BIN names no command")
	}
	program := exec.Command(command, "build", "-", "-o", path)
	program.Stdin = strings.NewReader(csv)
	program.Env = append(os.Environ(), "FIBULA_CONFIG=")
	if out, err := program.CombinedOutput(); err != nil {
		t.Fatalf("fibula build: %v\n%s", err, out)
	}
	return path
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var nowhere = componenttest.NewNopHost()

// annotated returns the attributes of a log record after the processor.
func annotated(t *testing.T, config *Config, resource, record map[string]any) (map[string]any, map[string]any) {
	t.Helper()
	sink := new(consumertest.LogsSink)
	factory := NewFactory()
	logs := must(factory.CreateLogs(context.Background(), processortest.NewNopSettings(factory.Type()), config, sink))
	in := plog.NewLogs()
	of := in.ResourceLogs().AppendEmpty()
	entry := of.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	err := errors.Join(of.Resource().Attributes().FromRaw(resource), entry.Attributes().FromRaw(record),
		logs.Start(context.Background(), nowhere), logs.ConsumeLogs(context.Background(), in),
		logs.Shutdown(context.Background()))
	if err != nil {
		t.Fatal(err)
	}
	out := sink.AllLogs()[0].ResourceLogs().At(0)
	return out.Resource().Attributes().AsRaw(), out.ScopeLogs().At(0).LogRecords().At(0).Attributes().AsRaw()
}

func TestAttributes(t *testing.T) {
	path := built(t, filepath.Join(t.TempDir(), "t.fib"), networks)
	one := func(lookup Lookup) *Config { return &Config{Lookups: []Lookup{lookup}} }
	client := Lookup{Table: path, From: []string{"client.address", "source.address"}, Prefix: "net."}
	for name, test := range map[string]struct {
		config        *Config
		in, out       map[string]any
		resource, res map[string]any
	}{
		"all columns": {
			config: one(client), in: map[string]any{"client.address": "10.1.2.3", "a": true},
			out: map[string]any{"client.address": "10.1.2.3", "a": true, "net.site": "hq", "net.vlan": int64(1)},
		},
		"the first that is an address": {
			config: one(client), in: map[string]any{"client.address": "example.com", "source.address": "[2001:db8::1]:443"},
			out: map[string]any{"client.address": "example.com", "source.address": "[2001:db8::1]:443", "net.site": "hq"},
		},
		"bytes, a large number": {
			config: one(client), in: map[string]any{"client.address": []byte{10, 20, 0, 1}},
			out: map[string]any{"client.address": []byte{10, 20, 0, 1}, "net.site": "zürich",
				"net.vlan": "18446744073709551615"},
		},
		"no match, and what was there stays": {
			config: one(client), in: map[string]any{"client.address": "192.0.2.1", "net.site": "old"},
			out: map[string]any{"client.address": "192.0.2.1", "net.site": "old"},
		},
		"a value is replaced": {
			config: one(client), in: map[string]any{"client.address": "10.1.1.1", "net.site": 7},
			out: map[string]any{"client.address": "10.1.1.1", "net.site": "hq", "net.vlan": int64(1)},
		},
		"no address": {
			config: one(client), in: map[string]any{"client.address": 167772161, "source.address": []byte{1, 2}},
			out: map[string]any{"client.address": int64(167772161), "source.address": []byte{1, 2}},
		},
		"a column and the prefix": {
			config: one(Lookup{Table: path, From: []string{"ip"}, Columns: []string{"site"}, Matched: "cidr"}),
			in:     map[string]any{"ip": "::ffff:10.20.0.1"},
			out:    map[string]any{"ip": "::ffff:10.20.0.1", "site": "zürich", "cidr": "10.20.0.0/16"},
		},
		"the resource": {
			config: one(Lookup{Table: path, From: []string{"host.ip"}, Context: "resource", Columns: []string{"site"}}),
			in:     map[string]any{"host.ip": "10.20.0.1"}, out: map[string]any{"host.ip": "10.20.0.1"},
			resource: map[string]any{"host.ip": "10.0.0.1"}, res: map[string]any{"host.ip": "10.0.0.1", "site": "hq"},
		},
		"two lookups": {
			config: &Config{Lookups: []Lookup{
				client, {Table: path, From: []string{"destination.address"}, Prefix: "to.", Columns: []string{"site"}},
			}},
			in: map[string]any{"client.address": "2001:db8::1", "destination.address": "10.20.0.1"},
			out: map[string]any{"client.address": "2001:db8::1", "destination.address": "10.20.0.1", "net.site": "hq",
				"to.site": "zürich"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			resource, record := annotated(t, test.config, test.resource, test.in)
			if fmt.Sprint(record) != fmt.Sprint(test.out) {
				t.Errorf("%v, not %v", record, test.out)
			}
			if test.res == nil {
				test.res = map[string]any{}
			}
			if fmt.Sprint(resource) != fmt.Sprint(test.res) {
				t.Errorf("the resource has %v, not %v", resource, test.res)
			}
		})
	}
}

// TestSpansAndPoints: spans, and data points of each kind; resources of both.
func TestSpansAndPoints(t *testing.T) {
	path := built(t, filepath.Join(t.TempDir(), "t.fib"), networks)
	config := &Config{Lookups: []Lookup{
		{Table: path, From: []string{"ip"}, Columns: []string{"site"}},
		{Table: path, From: []string{"ip"}, Columns: []string{"site"}, Context: "resource"},
	}}
	ctx, factory := context.Background(), NewFactory()
	set := processortest.NewNopSettings(factory.Type())
	expect := func(attributes pcommon.Map) {
		t.Helper()
		if site, ok := attributes.Get("site"); !ok || site.Str() != "zürich" {
			t.Errorf("%v", attributes.AsRaw())
		}
	}
	spans := new(consumertest.TracesSink)
	traces := must(factory.CreateTraces(ctx, set, config, spans))
	in := ptrace.NewTraces()
	in.ResourceSpans().AppendEmpty().Resource().Attributes().PutStr("ip", "10.20.0.1")
	in.ResourceSpans().At(0).ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes().PutStr("ip", "10.20.0.1")
	if err := errors.Join(traces.Start(ctx, nowhere), traces.ConsumeTraces(ctx, in)); err != nil {
		t.Fatal(err)
	}
	of := spans.AllTraces()[0].ResourceSpans().At(0)
	expect(of.Resource().Attributes())
	expect(of.ScopeSpans().At(0).Spans().At(0).Attributes())

	points := new(consumertest.MetricsSink)
	metrics := must(factory.CreateMetrics(ctx, set, config, points))
	all := pmetric.NewMetrics()
	all.ResourceMetrics().AppendEmpty().Resource().Attributes().PutStr("ip", "10.20.0.1")
	list := all.ResourceMetrics().At(0).ScopeMetrics().AppendEmpty().Metrics()
	list.AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty().Attributes().PutStr("ip", "10.20.0.1")
	list.AppendEmpty().SetEmptySum().DataPoints().AppendEmpty().Attributes().PutStr("ip", "10.20.0.1")
	list.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty().Attributes().PutStr("ip", "10.20.0.1")
	list.AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Attributes().PutStr("ip", "10.20.0.1")
	list.AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty().Attributes().PutStr("ip", "10.20.0.1")
	list.AppendEmpty()
	if err := errors.Join(metrics.Start(ctx, nowhere), metrics.ConsumeMetrics(ctx, all)); err != nil {
		t.Fatal(err)
	}
	out := points.AllMetrics()[0].ResourceMetrics().At(0)
	expect(out.Resource().Attributes())
	seen := 0
	for _, metric := range out.ScopeMetrics().At(0).Metrics().All() {
		eachPoint(metric, func(attributes pcommon.Map) { expect(attributes); seen++ })
	}
	if seen != 5 {
		t.Errorf("%d points", seen)
	}
}

// TestRowsOfTheTable compares records, in batches of any size, with lookups in the table itself.
func TestRowsOfTheTable(t *testing.T) {
	var csv strings.Builder
	csv.WriteString("prefix,id,name\n")
	for at := range 9000 { // more rows than are cached
		fmt.Fprintf(&csv, "10.%d.%d.0/25,%d,n%d\n", at/256, at%256, at, at%7)
	}
	path := built(t, filepath.Join(t.TempDir(), "t.fib"), csv.String())
	sink, factory := new(consumertest.LogsSink), NewFactory()
	config := &Config{Lookups: []Lookup{{Table: path, From: []string{"ip"}}}}
	logs := must(factory.CreateLogs(context.Background(), processortest.NewNopSettings(factory.Type()), config, sink))
	if err := logs.Start(context.Background(), nowhere); err != nil {
		t.Fatal(err)
	}
	table := must(fibula.Open(path))
	id, name := must(table.Column("id")), must(table.Column("name"))
	for batch, size := range []int{0, 1, 1023, 1024, 1025, 30_000, 70_000} {
		in := plog.NewLogs()
		records := in.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		for at := range size {
			at := at * 7919
			text := []string{fmt.Sprintf("10.%d.%d.%d", at%36, at/36%256, at/9216%256), "no address", ""}[max(0, at%50-47)]
			records.AppendEmpty().Attributes().PutStr("ip", text)
		}
		if err := logs.ConsumeLogs(context.Background(), in); err != nil {
			t.Fatal(err)
		}
		out := sink.AllLogs()[batch].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
		if out.Len() != size {
			t.Fatalf("%d records, not %d", out.Len(), size)
		}
		matched := 0
		for _, record := range out.All() {
			found := record.Attributes().AsRaw()
			expected := map[string]any{"ip": found["ip"]}
			if addr, ok := fibula.ParseAddr(found["ip"].(string)); ok {
				if row, ok := table.Lookup(addr); ok {
					number, _ := id.Number(row)
					expected["id"], expected["name"] = int64(number), name.Text(row)
					matched++
				}
			}
			if fmt.Sprint(found) != fmt.Sprint(expected) {
				t.Fatalf("%v, not %v", found, expected)
			}
		}
		if size > 1 && (matched < size/4 || matched > size*3/4) {
			t.Errorf("%d of %d have a match", matched, size)
		}
	}
}

// TestReplaced: under load, each batch is of one table, none is lost, and the last table counts in the end. A table
// that lacks a column, or is none, is reported once and not used.
func TestReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.fib")
	replace := func(version int) {
		built(t, path, fmt.Sprintf("prefix,version\n0.0.0.0/0,%d\n::/0,%d\n", version, version))
	}
	replace(0)
	logger, said := observer.New(zapcore.InfoLevel)
	sink, factory := new(consumertest.LogsSink), NewFactory()
	set := processortest.NewNopSettings(factory.Type())
	set.Logger = zap.New(logger)
	config := &Config{Lookups: []Lookup{{Table: path, From: []string{"ip"}, Columns: []string{"version"}}}}
	logs := must(factory.CreateLogs(context.Background(), set, config, sink))
	if err := logs.Start(context.Background(), nowhere); err != nil {
		t.Fatal(err)
	}
	const size = 1500
	send := func() error {
		in := plog.NewLogs()
		records := in.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		for at := range size {
			records.AppendEmpty().Attributes().PutStr("ip", []string{"10.0.0.1", "2001:db8::1"}[at%2])
		}
		return logs.ConsumeLogs(context.Background(), in)
	}
	var done atomic.Bool
	var sent atomic.Int64
	var wait sync.WaitGroup
	for range 2 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for !done.Load() {
				if err := send(); err != nil {
					t.Error(err)
					return
				}
				sent.Add(1)
			}
		}()
	}
	for version := 1; version <= 12; version++ {
		replace(version)
		for before := sent.Load(); sent.Load() < before+4; { // some batches of it
		}
	}
	done.Store(true)
	wait.Wait()
	versions := make(map[int64]bool)
	check := func(batches []plog.Logs) {
		t.Helper()
		for _, batch := range batches {
			records := batch.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
			first, _ := records.At(0).Attributes().Get("version")
			versions[first.Int()] = true
			for _, record := range records.All() {
				if version, ok := record.Attributes().Get("version"); !ok || version.Int() != first.Int() {
					t.Fatalf("%v, not %v", record.Attributes().AsRaw(), first.AsRaw())
				}
			}
		}
	}
	check(sink.AllLogs())
	if int64(len(sink.AllLogs())) != sent.Load() || len(versions) != 13 {
		t.Errorf("%d of %d batches, %d versions", len(sink.AllLogs()), sent.Load(), len(versions))
	}
	for _, wrong := range []struct {
		sentence string
		write    func()
	}{
		{"lacks a column", func() { built(t, path, "prefix,other\n0.0.0.0/0,1\n") }},
		{"cannot be opened", func() {
			err := errors.Join(os.WriteFile(path+".new", []byte("no table"), 0o400), os.Rename(path+".new", path))
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		wrong.write()
		sink.Reset()
		before := said.FilterLevelExact(zapcore.WarnLevel).Len()
		if err := errors.Join(send(), send(), send()); err != nil {
			t.Fatal(err)
		}
		clear(versions)
		check(sink.AllLogs())
		warnings := said.FilterLevelExact(zapcore.WarnLevel).All()[before:]
		if !versions[12] || len(versions) != 1 || len(warnings) != 1 ||
			!strings.Contains(warnings[0].Message, wrong.sentence) {
			t.Errorf("%s: %v, %v", wrong.sentence, versions, warnings)
		}
	}
}

func TestConfig(t *testing.T) {
	if err := componenttest.CheckConfigStruct(NewFactory().CreateDefaultConfig()); err != nil {
		t.Error(err)
	}
	for sentence, config := range map[string]*Config{
		"lookups: there is none":                {},
		"lookups[0].table: name a file":         {Lookups: []Lookup{{From: []string{"a"}}}},
		"lookups[1].from: name at least":        {Lookups: []Lookup{{Table: "t", From: []string{"a"}}, {Table: "t"}}},
		`lookups[0].context: it is "span"; "re`: {Lookups: []Lookup{{Table: "t", From: []string{"a"}, Context: "span"}}},
		"reload: it is -1ns":                    {Lookups: []Lookup{{Table: "t", From: []string{"a"}}}, Reload: -1},
	} {
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%v, not %s", err, sentence)
		}
	}
}

// TestStart: what is wrong with a table stops the start, with the library's sentence.
func TestStart(t *testing.T) {
	path := built(t, filepath.Join(t.TempDir(), "t.fib"), networks)
	for sentence, lookup := range map[string]Lookup{
		"lookups[0].table: fibula: " + path + "x: cannot open the snapshot: No such file": {Table: path + "x"},
		`no column "asn"; there are: site, vlan`:                                          {Table: path, Columns: []string{"asn"}},
	} {
		lookup.From = []string{"ip"}
		factory := NewFactory()
		logs := must(factory.CreateLogs(context.Background(), processortest.NewNopSettings(factory.Type()),
			&Config{Lookups: []Lookup{lookup}}, consumertest.NewNop()))
		if err := logs.Start(context.Background(), nowhere); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%v, not %s", err, sentence)
		}
	}
}

// TestLifeCycle is the collector's own test of processors.
func TestLifeCycle(t *testing.T) {
	path := built(t, filepath.Join(t.TempDir(), "t.fib"), networks)
	processortest.VerifyShutdown(t, NewFactory(), &Config{Lookups: []Lookup{{Table: path, From: []string{"ip"}}}})
	var _ component.Config = new(Config)
}
