// bank.v with REGISTERED for an ECP5: its block RAMs by name, because yosys does not use their output registers. The port
// A writes, B reads.
module bank #(parameter WIDTH = 64, parameter DEPTH = 512, parameter ADDRESS = 9, parameter REGISTERED = 1) (
    input clk,
    input read_enable,
    input [ADDRESS-1:0] read_address,
    output [WIDTH-1:0] read_data,
    input write_enable,
    input [ADDRESS-1:0] write_address,
    input [WIDTH-1:0] write_data
);
    // Bits of a block's word, and of its address without the bits that choose one in 16,384.
    localparam BITS = DEPTH <= 1024 ? 18 : DEPTH <= 2048 ? 9 : DEPTH <= 4096 ? 4 : DEPTH <= 8192 ? 2 : 1;
    localparam SHIFT = BITS == 18 ? 4 : BITS == 9 ? 3 : BITS == 4 ? 2 : BITS == 2 ? 1 : 0;
    localparam ROWS = (DEPTH + (16384 >> SHIFT) - 1) / (16384 >> SHIFT);
    localparam COLUMNS = (WIDTH + BITS - 1) / BITS;
    localparam ROW = 14 - SHIFT;
    localparam IS_SMALL = DEPTH <= 32;

    // In 18 bits, the two lowest bits of the address enable the two bytes that are written.
    wire [31:0] read_at = read_address, write_at = write_address;
    wire [13:0] read_place = read_at << SHIFT, write_place = write_at << SHIFT | (BITS == 18 ? 3 : 0);
    wire [COLUMNS*BITS-1:0] data [0:ROWS-1];
    wire [COLUMNS*BITS-1:0] write_bits = write_data;
    reg [31:0] row_first, row;
    always @(posedge clk) if (read_enable) begin
        row_first <= read_at >> ROW;
        row <= row_first;
    end

    // Few words lie in logic.
    reg [WIDTH-1:0] words [0:DEPTH-1];
    reg [WIDTH-1:0] first, second;
    assign read_data = IS_SMALL ? second : data[ROWS == 1 ? 0 : row][WIDTH-1:0];
    genvar r, c;
    generate
        if (IS_SMALL) always @(posedge clk) begin
            if (read_enable) first <= words[read_address];
            if (read_enable) second <= first;
            if (write_enable) words[write_address] <= write_data;
        end
        else for (r = 0; r < ROWS; r = r + 1) for (c = 0; c < COLUMNS; c = c + 1) begin : block
            wire [17:0] in = write_bits[c*BITS +: BITS];
            wire [17:0] out;
            assign data[r][c*BITS +: BITS] = out[BITS-1:0];
            DP16KD #(
                .DATA_WIDTH_A(BITS),
                .DATA_WIDTH_B(BITS),
                .REGMODE_A("NOREG"),
                .REGMODE_B("OUTREG"),
                .RESETMODE("SYNC"),
                .ASYNC_RESET_RELEASE("SYNC"),
                .WRITEMODE_A("READBEFOREWRITE"),
                .WRITEMODE_B("NORMAL"),
                .CSDECODE_A("0b000"),
                .CSDECODE_B("0b000"),
                .CLKAMUX("CLKA"),
                .CLKBMUX("CLKB"),
                .GSR("AUTO")
            ) ram (
                .CLKA(clk),
                .CLKB(clk),
                .CEA(1'b1),
                .OCEA(1'b1),
                .CEB(read_enable),
                .OCEB(read_enable),
                .WEA(write_enable && write_at >> ROW == r),
                .WEB(1'b0),
                .RSTA(1'b0),
                .RSTB(1'b0),
                .CSA0(1'b0),
                .CSA1(1'b0),
                .CSA2(1'b0),
                .CSB0(1'b0),
                .CSB1(1'b0),
                .CSB2(1'b0),
                .ADA0(write_place[0]),
                .ADA1(write_place[1]),
                .ADA2(write_place[2]),
                .ADA3(write_place[3]),
                .ADA4(write_place[4]),
                .ADA5(write_place[5]),
                .ADA6(write_place[6]),
                .ADA7(write_place[7]),
                .ADA8(write_place[8]),
                .ADA9(write_place[9]),
                .ADA10(write_place[10]),
                .ADA11(write_place[11]),
                .ADA12(write_place[12]),
                .ADA13(write_place[13]),
                .ADB0(read_place[0]),
                .ADB1(read_place[1]),
                .ADB2(read_place[2]),
                .ADB3(read_place[3]),
                .ADB4(read_place[4]),
                .ADB5(read_place[5]),
                .ADB6(read_place[6]),
                .ADB7(read_place[7]),
                .ADB8(read_place[8]),
                .ADB9(read_place[9]),
                .ADB10(read_place[10]),
                .ADB11(read_place[11]),
                .ADB12(read_place[12]),
                .ADB13(read_place[13]),
                .DIA0(in[0]),
                .DIA1(in[1]),
                .DIA2(in[2]),
                .DIA3(in[3]),
                .DIA4(in[4]),
                .DIA5(in[5]),
                .DIA6(in[6]),
                .DIA7(in[7]),
                .DIA8(in[8]),
                .DIA9(in[9]),
                .DIA10(in[10]),
                .DIA11(in[11]),
                .DIA12(in[12]),
                .DIA13(in[13]),
                .DIA14(in[14]),
                .DIA15(in[15]),
                .DIA16(in[16]),
                .DIA17(in[17]),
                .DOB0(out[0]),
                .DOB1(out[1]),
                .DOB2(out[2]),
                .DOB3(out[3]),
                .DOB4(out[4]),
                .DOB5(out[5]),
                .DOB6(out[6]),
                .DOB7(out[7]),
                .DOB8(out[8]),
                .DOB9(out[9]),
                .DOB10(out[10]),
                .DOB11(out[11]),
                .DOB12(out[12]),
                .DOB13(out[13]),
                .DOB14(out[14]),
                .DOB15(out[15]),
                .DOB16(out[16]),
                .DOB17(out[17])
            );
        end
    endgenerate

`ifndef SYNTHESIS
    integer i;
    initial for (i = 0; i < DEPTH; i = i + 1) words[i] = 0;
`endif
endmodule
