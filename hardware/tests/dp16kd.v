// A block RAM of an ECP5 as bank_ecp5.v uses it, for simulation: port A writes words of at most 18 bits, B reads them,
// with the output register. Bits of addresses and words are where yosys puts them when it maps a memory to the primitive;
// bits 0 and 1 of an 18-bit word's address enable its two bytes.
module DP16KD #(
    parameter DATA_WIDTH_A = 18, parameter DATA_WIDTH_B = 18,
    parameter REGMODE_A = "NOREG", parameter REGMODE_B = "NOREG",
    parameter RESETMODE = "SYNC", parameter ASYNC_RESET_RELEASE = "SYNC", parameter WRITEMODE_A = "NORMAL",
    parameter WRITEMODE_B = "NORMAL", parameter CSDECODE_A = "0b000", parameter CSDECODE_B = "0b000",
    parameter CLKAMUX = "CLKA", parameter CLKBMUX = "CLKB", parameter GSR = "AUTO"
) (
    input CLKA, CLKB, CEA, OCEA, CEB, OCEB, WEA, WEB, RSTA, RSTB, CSA0, CSA1, CSA2, CSB0, CSB1, CSB2,
    input ADA0, ADA1, ADA2, ADA3, ADA4, ADA5, ADA6, ADA7, ADA8, ADA9, ADA10, ADA11, ADA12, ADA13, ADB0, ADB1, ADB2,
        ADB3, ADB4, ADB5, ADB6, ADB7, ADB8, ADB9, ADB10, ADB11, ADB12, ADB13, DIA0, DIA1, DIA2, DIA3, DIA4, DIA5,
        DIA6, DIA7, DIA8, DIA9, DIA10, DIA11, DIA12, DIA13, DIA14, DIA15, DIA16, DIA17,
    output DOB0, DOB1, DOB2, DOB3, DOB4, DOB5, DOB6, DOB7, DOB8, DOB9, DOB10, DOB11, DOB12, DOB13, DOB14, DOB15,
        DOB16, DOB17
);
    localparam SHIFT =
        DATA_WIDTH_A == 18 ? 4 : DATA_WIDTH_A == 9 ? 3 : DATA_WIDTH_A == 4 ? 2 : DATA_WIDTH_A == 2 ? 1 : 0;
    reg [17:0] words [0:16383];
    wire [13:0] write_at = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
    wire [13:0] read_at = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
    wire [17:0] in = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4,
        DIA3, DIA2, DIA1, DIA0};
    reg [17:0] first, second;
    assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2,
        DOB1, DOB0} = REGMODE_B == "OUTREG" ? second : first;
    integer i;
    initial for (i = 0; i < 16384; i = i + 1) words[i] = 0;
    always @(posedge CLKB) begin
        if (CEB) first <= words[read_at >> SHIFT];
        if (OCEB) second <= first;
    end
    always @(posedge CLKA) if (CEA && WEA) begin
        if (DATA_WIDTH_A != 18) words[write_at >> SHIFT] <= in & (1 << DATA_WIDTH_A) - 1;
        else begin
            if (ADA0) words[write_at >> SHIFT][8:0] <= in[8:0];
            if (ADA1) words[write_at >> SHIFT][17:9] <= in[17:9];
        end
    end
endmodule
