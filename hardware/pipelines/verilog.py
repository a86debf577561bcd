"""Writes a pipeline as Verilog."""

from pathlib import Path

from amaranth.back import verilog

HERE = Path(__file__).parent


def write(pipeline, path, bank="bank.v"):
    """The file, and beside it a copy of the one with the banks, as bank.v."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = verilog.convert(pipeline, name="pipeline", ports=pipeline.ports, strip_internal_attrs=True)
    path.write_text(text)
    copy = path.with_name("bank.v")
    copy.write_text((HERE / bank).read_text())
    return [path, copy]


def write_serial(pipeline, path):
    """A module `serial` around the pipeline for a chip with fewer pins than it has ports: inputs are shifted in bit by
    bit, outputs out. What lies between is registers, so the pipeline's clock can be seen."""
    outputs = [port for port in pipeline.ports if port.name.startswith("out_") and port.name != "out_ready"]
    outputs += [port for port in pipeline.ports if port.name == "in_ready"]
    inputs = [port for port in pipeline.ports if all(port is not output for output in outputs)]
    lines, links = [], []
    for name, ports in (("ins", inputs), ("outs", outputs)):
        at = 0
        for port in ports:
            links.append(f".{port.name}({name}[{at + len(port) - 1}:{at}])")
            at += len(port)
        lines.append(f"{'reg' if name == 'ins' else 'wire'} [{at - 1}:0] {name};")
        if name == "ins":
            lines.append("always @(posedge clk) ins <= {ins, in};")
        else:
            lines.append(f"reg [{at - 1}:0] held; always @(posedge clk) held <= load ? outs : held >> 1;")
    lines.append("assign out = held[0];")
    lines.append(f"pipeline pipeline (.clk(clk), .rst(rst), {', '.join(links)});")
    text = "\n    ".join(["module serial (input clk, input rst, input in, input load, output out);", *lines])
    Path(path).write_text(f"{text}\nendmodule\n")
