package barrier

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// limitsWord is the first argument of task-init when it only sets limits: then come the limits, the
// path of the program and its arguments with its name first.
const limitsWord = "limits"

// Limited returns the path and the arguments of a command that sets resource limits and becomes a
// program with them. Without limits it is the program itself.
func Limited(taskInit []string, limits []Rlimit, path string, args []string) (string, []string) {
	if len(limits) == 0 {
		return path, args
	}
	text, err := json.Marshal(limits)
	if err != nil {
		panic(err) // numbers alone
	}
	return taskInit[0], append(append(append([]string(nil), taskInit...), limitsWord, string(text), path), args...)
}

// execLimited sets limits and becomes a program. It returns only if that failed, with a shell's exit
// code.
func execLimited(args []string) int {
	var limits []Rlimit
	err := errors.New("task-init is not for users: it is started by cox")
	if len(args) >= 3 {
		err = json.Unmarshal([]byte(args[0]), &limits)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitNotFound
	}
	path, argv, env := args[1], args[2:], os.Environ()
	setLimits(limits)
	err = syscall.Exec(path, argv, env)
	fmt.Fprintf(os.Stderr, "slurmstepd: error: execve(): %s: %s\n", path, errnoText(err))
	return orders{}.exitCode(err)
}
