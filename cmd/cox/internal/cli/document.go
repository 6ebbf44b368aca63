package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec/input"
)

// ReadDocument reads a file, "-" from standard input.
func (a *App) ReadDocument(name string) ([]byte, error) {
	if name == "-" {
		data, err := io.ReadAll(a.In)
		if err != nil {
			return nil, fault.New(fault.Invalid, "read standard input: %w", err)
		}
		return data, nil
	}
	data, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.Invalid, "%s: no such file", name).Advise("name a file that exists")
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.New(fault.Permission, "%s: you may not read this file", name).Advise("%s", ReadRemedy(name))
	case errors.Is(err, syscall.EISDIR):
		return nil, fault.New(fault.Invalid, "%s: this is a folder, not a file", name).Advise("name a file in it")
	case err != nil:
		return nil, fault.New(fault.Invalid, "read %s: %w", name, err).Advise("name a file that can be read")
	}
	return data, nil
}

// ReadRemedy says how a file that the caller may not read becomes readable: only its owner can do that.
func ReadRemedy(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return "ask the owner of its folder to let you in, or copy the file to a place of yours"
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(st.Uid) == os.Getuid() {
		return "make it readable: chmod u+r " + name
	}
	owner := "its owner"
	if ok {
		if u, err := user.LookupId(strconv.Itoa(int(st.Uid))); err == nil {
			owner = u.Username
		}
	}
	return "it belongs to " + owner + ", who can let you read it or give you a copy"
}

// WriteFile writes a file for the user.
func WriteFile(name string, data []byte) error {
	err := os.WriteFile(name, data, 0o666)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.Invalid, "%s: the folder %s does not exist", name, filepath.Dir(name)).Advise("mkdir -p %s, or name another file", filepath.Dir(name))
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Permission, "%s: you may not write this file", name).Advise("name a file in a folder of yours")
	case err != nil:
		return fault.New(fault.KindOf(err), "write %s: %w", name, err)
	}
	return nil
}

// jobField is a line that a job in the native form has, and that neither rules nor a configuration have.
var jobField = regexp.MustCompile(`(?m)^(command|tasks|tasks_per_node|gpus_per_node)\s*:`)

// CheckInput refuses a file that is something else than a command takes: a job, a batch script, a web
// page, a file of another tool. what names what the command takes, help where to read about it. A text
// that nothing recognises passes: whoever reads it says what is wrong with it.
func CheckInput(name string, data []byte, wanted input.Kind, what, help string) error {
	in := input.Recognise(name, data)
	switch {
	case in.Kind == wanted, in.Kind == input.Empty:
		return nil
	case in.Kind == input.Native && jobField.Match(data):
		return fault.New(fault.Invalid, "%s: this is a job, not %s", name, what).Advise("to run it: cox submit %s", name)
	case in.Kind == input.Batch && strings.HasPrefix(string(data), "#!"):
		return fault.New(fault.Invalid, "%s: this is a batch script, not %s", name, what).Advise("to run it: cox submit %s", name)
	case in.Readable():
		return nil
	}
	is, _, _ := strings.Cut(in.What, ",")
	remedy := help
	if slices.Contains([]input.Kind{input.Rules, input.Config, input.SlurmConf}, in.Kind) {
		remedy = in.Remedy
	}
	return fault.New(fault.Invalid, "%s: this is %s, not %s", name, is, what).Advise("%s", remedy)
}
