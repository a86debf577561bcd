// Package fibulaprocessor is a processor of the OpenTelemetry collector: it looks the addresses of logs, spans and data
// points up in tables of `fibula build`, and adds the values of the prefix that covers each as attributes.
package fibulaprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
)

// NewFactory returns the factory of processors of the type `fibula`.
func NewFactory() processor.Factory {
	return processor.NewFactory(component.MustNewType("fibula"), createDefaultConfig,
		processor.WithLogs(createLogs, component.StabilityLevelBeta),
		processor.WithTraces(createTraces, component.StabilityLevelBeta),
		processor.WithMetrics(createMetrics, component.StabilityLevelBeta))
}

func createDefaultConfig() component.Config { return &Config{Reload: 5 * time.Second} }

// options are those of each kind.
func options(a *annotator) []processorhelper.Option {
	return []processorhelper.Option{
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}),
		processorhelper.WithStart(a.start),
	}
}

func createLogs(
	ctx context.Context, set processor.Settings, config component.Config, next consumer.Logs,
) (processor.Logs, error) {
	a := newAnnotator(config.(*Config), set.Logger)
	return processorhelper.NewLogs(ctx, set, config, next, a.logs, options(a)...)
}

func createTraces(
	ctx context.Context, set processor.Settings, config component.Config, next consumer.Traces,
) (processor.Traces, error) {
	a := newAnnotator(config.(*Config), set.Logger)
	return processorhelper.NewTraces(ctx, set, config, next, a.traces, options(a)...)
}

func createMetrics(
	ctx context.Context, set processor.Settings, config component.Config, next consumer.Metrics,
) (processor.Metrics, error) {
	a := newAnnotator(config.(*Config), set.Logger)
	return processorhelper.NewMetrics(ctx, set, config, next, a.metrics, options(a)...)
}
