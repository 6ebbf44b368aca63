package asuser

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Faults of named pipes, completing "FILE cannot be opened: ".
var (
	errNoReader  = errors.New("it is a named pipe that no process reads")
	errPipeInput = errors.New("it is a named pipe, for whose writer the node would wait; read from it inside the job, as in `program < PIPE`")
)

// OpenStream opens a file for the input or output of a program by open (OpenFile, os.OpenFile) and
// never waits for another process: a named pipe is refused for reading, and for writing unless
// a process reads from it. A pipe that a process has open (/proc/PID/fd/N) needs no wait. What is returned blocks reads and writes as usual.
func OpenStream(open func(string, int, os.FileMode) (*os.File, error), name string, flags int, mode os.FileMode) (*os.File, error) {
	f, err := open(name, flags|unix.O_NONBLOCK|unix.O_NOCTTY, mode)
	if errors.Is(err, unix.ENXIO) && isPipe(os.Stat(name)) {
		err = &fs.PathError{Op: "open", Path: name, Err: errNoReader}
	}
	if err != nil {
		return nil, err
	}
	if flags&(os.O_WRONLY|os.O_RDWR) == 0 && isPipe(f.Stat()) && !isDescriptor(name) {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name, Err: errPipeInput}, f.Close())
	}
	if err := unix.SetNonblock(int(f.Fd()), false); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name, Err: err}, f.Close())
	}
	return f, nil
}

// isDescriptor reports whether a name is that of an open file of a process.
func isDescriptor(name string) bool {
	ok, err := filepath.Match("/proc/[0-9]*/fd/[0-9]*", name)
	return ok && err == nil
}

func isPipe(st os.FileInfo, err error) bool { return err == nil && st.Mode()&os.ModeNamedPipe != 0 }
