package sbcast

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// receiveOption makes sbcast the end that writes: standard input is the file.
const receiveOption = "--receive-here"

// writing is what the writing end is told.
type writing struct {
	Name     string // of the source, without its folder
	Dest     string
	Mode     fs.FileMode
	Size     int64     // what comes must be as long
	Modified time.Time // zero: now
	Force    bool      // replace what is there
}

// asWords is the writing as arguments.
func (w *writing) asWords() []string {
	var modified int64
	if !w.Modified.IsZero() {
		modified = w.Modified.UnixNano()
	}
	return []string{
		w.Name, w.Dest, strconv.FormatUint(uint64(w.Mode), 8), strconv.FormatInt(w.Size, 10),
		strconv.FormatInt(modified, 10), strconv.FormatBool(w.Force),
	}
}

// readWords reads what asWords wrote.
func readWords(args []string) (*writing, error) {
	if len(args) != 6 {
		return nil, errors.New("sbcast starts this by itself")
	}
	mode, err1 := strconv.ParseUint(args[2], 8, 32)
	size, err2 := strconv.ParseInt(args[3], 10, 64)
	modified, err3 := strconv.ParseInt(args[4], 10, 64)
	force, err4 := strconv.ParseBool(args[5])
	w := &writing{Name: args[0], Dest: args[1], Mode: fs.FileMode(mode).Perm(), Size: size, Force: force}
	if modified != 0 {
		w.Modified = time.Unix(0, modified)
	}
	return w, errors.Join(err1, err2, err3, err4)
}

// receiveFile writes the file: whole, or not at all.
func (c *caster) receiveFile(args []string) error {
	w, err := readWords(args)
	if err != nil {
		return err
	}
	if st, err := os.Stat(w.Dest); err == nil && st.IsDir() {
		w.Dest = filepath.Join(w.Dest, w.Name)
	}
	if _, err := os.Lstat(w.Dest); err == nil && !w.Force {
		return c.errExists(w.Dest)
	}
	f, err := os.CreateTemp(filepath.Dir(w.Dest), ".sbcast-*")
	if err != nil {
		return c.onNode(err)
	}
	defer os.Remove(f.Name())
	if err := w.fillFile(f, c.In); err != nil {
		return c.onNode(err)
	}
	if w.Force {
		err = os.Rename(f.Name(), w.Dest)
	} else if err = os.Link(f.Name(), w.Dest); errors.Is(err, fs.ErrExist) {
		return c.errExists(w.Dest)
	}
	return c.onNode(err)
}

// fillFile writes the contents and the attributes.
func (w *writing) fillFile(f *os.File, in io.Reader) error {
	n, err := io.Copy(f, in)
	if err == nil && n != w.Size {
		err = fmt.Errorf("%d of %d bytes came", n, w.Size)
	}
	if err == nil {
		err = f.Chmod(w.Mode)
	}
	if err = errors.Join(err, f.Close()); err == nil && !w.Modified.IsZero() {
		err = os.Chtimes(f.Name(), w.Modified, w.Modified)
	}
	return err
}

// onNode says on which node an error happened.
func (c *caster) onNode(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", c.Getenv("SLURMD_NODENAME"), err)
}

func (c *caster) errExists(dest string) error {
	return fault.New(fault.Conflict, "%s: %s: File exists", c.Getenv("SLURMD_NODENAME"), dest).Advise("--force replaces it")
}
