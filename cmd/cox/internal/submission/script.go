package submission

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec/input"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// readScript reads a script or a specification for a command of cox, "-" from standard input.
func readScript(name, verb string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, scriptError(name, verb, err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, sbatch.MaxScript+1))
	if err != nil {
		return nil, scriptError(name, verb, err)
	}
	if len(data) > sbatch.MaxScript {
		return nil, fault.New(fault.Invalid, "%s: larger than %d MiB, which no script is", name, sbatch.MaxScript>>20).
			Advise("keep the script small and let it read its data from files")
	}
	return data, nil
}

func scriptError(name, verb string, err error) error {
	var pe *fs.PathError
	text := err
	if errors.As(err, &pe) {
		text = pe.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		remedy := "name a file that exists"
		if verb == "run" || verb == "submit" {
			remedy += "; for a command: cox " + verb + " -- " + name
		}
		return fault.New(fault.Invalid, "%s: %w", name, text).Advise("%s", remedy)
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Permission, "%s: you may not read this file", name).Advise("%s", cli.ReadRemedy(name))
	case errors.Is(err, syscall.EISDIR):
		return fault.New(fault.Invalid, "%s: is a folder, not a script", name).Advise("%s", input.FolderRemedy(name, listNames(name)))
	}
	return fault.New(fault.Invalid, "%s: %w", name, text)
}

// listNames are the names of what a folder has; none if it cannot be read.
func listNames(folder string) (names []string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
