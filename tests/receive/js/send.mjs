// Sends one trace of two spans over OTLP/HTTP, as the environment says: protobuf or JSON, with or without gzip.
import { SpanStatusCode, context, trace } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtoExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

const json = process.env.OTEL_EXPORTER_OTLP_PROTOCOL === 'http/json';
const exporter = json ? new JsonExporter() : new ProtoExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
const tracer = provider.getTracer('receive-test');
const root = tracer.startSpan('invoke_agent a', { attributes: { 'gen_ai.operation.name': 'invoke_agent' } });
const tool = tracer.startSpan(
  'execute_tool f',
  { attributes: { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'f', n: 9007199254740991, big: 'x'.repeat(100000) } },
  trace.setSpan(context.active(), root),
);
tool.setStatus({ code: SpanStatusCode.ERROR, message: 'boom' });
tool.end();
root.end();
await provider.shutdown();
