// One bank of a memory: a read port with an enable and a register, as block RAM has it, and a write port. A word that
// is written while it is read is read as it was before. REGISTERED adds a second register behind the first.
module bank #(parameter WIDTH = 64, parameter DEPTH = 512, parameter ADDRESS = 9, parameter REGISTERED = 0) (
    input clk,
    input read_enable,
    input [ADDRESS-1:0] read_address,
    output [WIDTH-1:0] read_data,
    input write_enable,
    input [ADDRESS-1:0] write_address,
    input [WIDTH-1:0] write_data
);
    reg [WIDTH-1:0] words [0:DEPTH-1];
    reg [WIDTH-1:0] first, second;
    assign read_data = REGISTERED ? second : first;

    always @(posedge clk) begin
        if (read_enable) first <= words[read_address];
        if (read_enable) second <= first;
        if (write_enable) words[write_address] <= write_data;
    end

`ifndef SYNTHESIS
    integer i;
    initial for (i = 0; i < DEPTH; i = i + 1) words[i] = 0;
`endif
endmodule
