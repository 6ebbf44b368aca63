#include "textflag.h"

// func prlimitOpenFiles(limit *[2]uint64) int64
TEXT ·prlimitOpenFiles(SB), NOSPLIT, $0-16
	MOVD $261, R8 // prlimit64
	MOVD $0, R0   // this process
	MOVD $7, R1   // RLIMIT_NOFILE
	MOVD $0, R2   // sets nothing
	MOVD limit+0(FP), R3
	SVC
	MOVD R0, ret+8(FP)
	RET
