package fibulaprocessor

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	fibula "fibula.example/bindings/go"
)

// An annotator does the lookups of a processor.
type annotator struct {
	config  *Config
	logger  *zap.Logger
	lookups []*lookup
}

func newAnnotator(config *Config, logger *zap.Logger) *annotator {
	return &annotator{config: config, logger: logger}
}

// start opens the tables; lookups of one file share its table. The garbage collector closes them.
func (a *annotator) start(context.Context, component.Host) error {
	files := make(map[string]*fibula.File)
	for at, config := range a.config.Lookups {
		file := files[config.Table]
		if file == nil {
			opened, err := fibula.OpenFile(config.Table, a.config.Reload)
			if err != nil {
				return fmt.Errorf("lookups[%d].table: %w", at, err)
			}
			file, files[config.Table] = opened, opened
		}
		found, err := newLookup(config, file, a.logger)
		if err != nil {
			return fmt.Errorf("lookups[%d].columns: %s: %w", at, config.Table, err)
		}
		a.lookups = append(a.lookups, found)
	}
	return nil
}

func (a *annotator) logs(_ context.Context, logs plog.Logs) (plog.Logs, error) {
	for _, lookup := range a.lookups {
		addresses := lookup.begin()
		for _, resource := range logs.ResourceLogs().All() {
			if lookup.isOfResource {
				addresses.add(resource.Resource().Attributes())
				continue
			}
			for _, scope := range resource.ScopeLogs().All() {
				for _, record := range scope.LogRecords().All() {
					addresses.add(record.Attributes())
				}
			}
		}
		addresses.end()
	}
	return logs, nil
}

func (a *annotator) traces(_ context.Context, traces ptrace.Traces) (ptrace.Traces, error) {
	for _, lookup := range a.lookups {
		addresses := lookup.begin()
		for _, resource := range traces.ResourceSpans().All() {
			if lookup.isOfResource {
				addresses.add(resource.Resource().Attributes())
				continue
			}
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					addresses.add(span.Attributes())
				}
			}
		}
		addresses.end()
	}
	return traces, nil
}

func (a *annotator) metrics(_ context.Context, metrics pmetric.Metrics) (pmetric.Metrics, error) {
	for _, lookup := range a.lookups {
		addresses := lookup.begin()
		for _, resource := range metrics.ResourceMetrics().All() {
			if lookup.isOfResource {
				addresses.add(resource.Resource().Attributes())
				continue
			}
			for _, scope := range resource.ScopeMetrics().All() {
				for _, metric := range scope.Metrics().All() {
					eachPoint(metric, addresses.add)
				}
			}
		}
		addresses.end()
	}
	return metrics, nil
}

// eachPoint calls a function with the attributes of each data point.
func eachPoint(metric pmetric.Metric, call func(pcommon.Map)) {
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		for _, point := range metric.Gauge().DataPoints().All() {
			call(point.Attributes())
		}
	case pmetric.MetricTypeSum:
		for _, point := range metric.Sum().DataPoints().All() {
			call(point.Attributes())
		}
	case pmetric.MetricTypeHistogram:
		for _, point := range metric.Histogram().DataPoints().All() {
			call(point.Attributes())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, point := range metric.ExponentialHistogram().DataPoints().All() {
			call(point.Attributes())
		}
	case pmetric.MetricTypeSummary:
		for _, point := range metric.Summary().DataPoints().All() {
			call(point.Attributes())
		}
	}
}
