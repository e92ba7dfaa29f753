module npu

go 1.19
