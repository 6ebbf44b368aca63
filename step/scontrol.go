package step

import "fmt"

// ScontrolMain is scontrol with its arguments (without the command's name), as far
// as it concerns the allocation that it runs in.
func ScontrolMain(args []string, stdio Stdio) int {
	fmt.Fprintln(stdio.Err, "scontrol: error: not built yet")
	return 1
}
