package step

import (
	"fmt"
	"io"
	"os"
)

// Stdio is what a command reads and writes. Files where they are files: srun's
// tasks read In directly if it is one.
type Stdio struct {
	In       *os.File
	Out, Err io.Writer
}

// SrunMain is srun with its arguments (without the command's name). The result is
// its exit code.
func SrunMain(args []string, io Stdio) int {
	fmt.Fprintln(io.Err, "srun: error: not built yet")
	return 1
}

// ScontrolMain is scontrol with its arguments (without the command's name), as far
// as it concerns the allocation that it runs in.
func ScontrolMain(args []string, io Stdio) int {
	fmt.Fprintln(io.Err, "scontrol: error: not built yet")
	return 1
}
