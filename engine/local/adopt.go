package local

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
)

func (e *Engine) bin() string { return filepath.Dir(e.cox()) }

// adopt takes over every attempt on disk: ended ones are known again by their
// last report, others are followed from where they are.
func (e *Engine) adopt() error {
	entries, err := os.ReadDir(filepath.Join(e.cfg.Root, "a"))
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		name := filepath.Join(e.cfg.Root, "a", entry.Name())
		ref, err := attempt.ParseRef(entry.Name())
		if err != nil {
			if strings.HasPrefix(entry.Name(), "-") { // never put in place, or forgotten
				err = os.RemoveAll(name)
			}
			if err != nil {
				e.cfg.Log.Warn("adopt", "dir", name, "err", err)
			}
			continue
		}
		errs = append(errs, e.adoptOne(attempt.Dir(name), ref))
	}
	return errors.Join(errs...)
}

func (e *Engine) adoptOne(dir attempt.Dir, ref engine.Ref) error {
	l, err := dir.ReadLaunch()
	if err != nil {
		return err
	}
	g := e.newGang(dir, l)
	e.gangs[ref] = g
	var last engine.Report
	if err := attempt.ReadJSON(dir.File("report.json"), &last); err == nil && last.Phase == engine.Ended {
		g.ended = true
		close(g.done)
		e.log.publish(last)
		return nil
	}
	m, err := dir.Marker()
	if err != nil {
		return err
	}
	g.marker = m
	g.publish()
	e.wg.Go(func() { g.run(m) })
	return nil
}

// same reports whether two reports differ in nothing.
func same(a, b engine.Report) bool { return reflect.DeepEqual(a, b) }
