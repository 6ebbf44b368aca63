package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/coxswain-sched/coxswain/model/fault"
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
	case err != nil:
		kind := fault.Invalid
		if errors.Is(err, fs.ErrPermission) {
			kind = fault.Permission
		}
		return nil, fault.New(kind, "%w", err).Advise("name a file that can be read")
	}
	return data, nil
}
