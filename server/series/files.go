package series

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// files are the series of jobs in a directory, a thousand in each directory below it.
type files struct {
	dir  string
	room int64         // bytes for all of them; 0: any
	keep time.Duration // after the last change; 0: for ever
}

// nameOf is the file of a job.
func (f *files) nameOf(id job.ID) string {
	return filepath.Join(f.dir, strconv.FormatUint(uint64(id)/1000, 10), strconv.FormatUint(uint64(id), 10)+".json")
}

// read reads the series of a job; fault.NotFound: there is none.
func (f *files) read(id job.ID) (*Series, error) {
	text, err := os.ReadFile(f.nameOf(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "job %s has no series", id)
	}
	if err != nil {
		return nil, err
	}
	s := &Series{}
	if err := json.Unmarshal(text, s); err != nil || s.Version != version || s.Step <= 0 {
		return nil, fault.New(fault.NotFound, "the series of job %s is damaged, or of another version of cox: %w", id, errors.Join(err, fmt.Errorf("version %d", s.Version)))
	}
	return s, nil
}

// write replaces the series of a job.
func (f *files) write(id job.ID, s *Series) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	name := f.nameOf(id)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return errors.Join(err, os.Remove(name+".new"))
	}
	return os.Rename(name+".new", name)
}

// sweepFiles removes files that are too old, and then the oldest until the others have room enough.
func (f *files) sweepFiles(now time.Time) error {
	type one struct {
		name string
		size int64
		at   time.Time
	}
	var kept []one
	var all int64
	err := filepath.WalkDir(f.dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if f.keep > 0 && now.Sub(info.ModTime()) > f.keep || strings.HasSuffix(name, ".new") && now.Sub(info.ModTime()) > time.Hour {
			return os.Remove(name)
		}
		size := (info.Size() + 4095) &^ 4095 // as it counts on disk
		kept = append(kept, one{name, size, info.ModTime()})
		all += size
		return nil
	})
	if err != nil || f.room == 0 || all <= f.room {
		return err
	}
	slices.SortFunc(kept, func(a, b one) int { return a.at.Compare(b.at) })
	for _, k := range kept {
		if all <= f.room {
			break
		}
		if err := os.Remove(k.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		all -= k.size
	}
	return nil
}
