package podagent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Variables of the environment that say where things are, for who runs members without
// pods of their own. In a pod none is needed: the constants above are true there.
const (
	DirEnv         = "COX_POD_DIR"         // in the place of Dir
	BinEnv         = "COX_POD_BIN"         // in the place of BinDir
	PlanEnv        = "COX_POD_PLAN"        // in the place of PlanDir
	TerminationEnv = "COX_POD_TERMINATION" // in the place of TerminationFile
	LostEnv        = "COX_POD_LOST"        // in the place of LostAfter, as "15s"
	SecretsEnv     = "COX_POD_SECRETS"     // in the place of SecretsDir
	PrivateEnv     = "COX_POD_PRIVATE"     // in the place of PrivateDir
	GroupEnv       = "COX_POD_CGROUP"      // in the place of GroupDir
)

// TerminationFile is where a member's Outcome goes: the standard of the API.
const TerminationFile = "/dev/termination-log"

// GroupDir is where the kernel shows the container's control group.
const GroupDir = "/sys/fs/cgroup"

// LostAfter is how long a member whose connection has ended may take to be back.
const LostAfter = 15 * time.Second

// Place is where things are for one member.
type Place struct {
	Dir, Bin, Plan, Termination, Group string
	Secrets, Private                   string

	Listen string // address; empty: all

	Lost time.Duration
}

// PlaceOf is the place that an environment names.
func PlaceOf(env func(string) string) (Place, error) {
	p := Place{
		Dir: cmp.Or(env(DirEnv), Dir), Bin: cmp.Or(env(BinEnv), BinDir), Plan: cmp.Or(env(PlanEnv), PlanDir),
		Termination: cmp.Or(env(TerminationEnv), TerminationFile),
		Secrets:     cmp.Or(env(SecretsEnv), SecretsDir), Private: cmp.Or(env(PrivateEnv), PrivateDir),
		Group: cmp.Or(env(GroupEnv), GroupDir), Lost: LostAfter, Listen: env(HereEnv),
	}
	if text := env(LostEnv); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return p, fault.New(fault.Invalid, "%s=%s is no span of time", LostEnv, text).Advise("write it as 15s")
		}
		p.Lost = d
	}
	return p, nil
}

// The files of a member below its Dir.
func (p Place) rootDir() string     { return filepath.Join(p.Dir, "run") }
func (p Place) linksDir() string    { return filepath.Join(p.rootDir(), "bin") }     // srun and its like
func (p Place) startedFile() string { return filepath.Join(p.rootDir(), "started") } // is there once the barrier is open
func (p Place) servingFile() string { return filepath.Join(p.rootDir(), "serving") } // is there once the startup probe has passed
func (p Place) tellSocket() string  { return filepath.Join(p.rootDir(), "tell") }    // socket of member 0 that takes Words

// heartbeat is how often member 0 asks the others whether they are there, and silence how long
// either may say nothing until the connection counts as broken.
func (p Place) heartbeat() time.Duration    { return p.Lost / 3 }
func (p Place) silenceLimit() time.Duration { return 2 * p.Lost }

// slotOf is where member i sits, by the same name on every member: on its own the slot of
// its supervisor, on others a directory with two sockets that lead there.
func slotOf(root string, i int) attempt.Slot { return attempt.SlotOf(root, strconv.Itoa(i)) }

// rootOf is the root below another member's Dir.
func rootOf(dir string) string { return Place{Dir: dir}.rootDir() }

// readPlan reads the plan, and checks that a crew can work by it.
func (p Place) readPlan() (*Plan, error) {
	name := filepath.Join(p.Plan, PlanFile)
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the attempt's plan: %w", err).Advise("mount the attempt's Secret at %s", p.Plan)
	}
	plan := new(Plan)
	if err := json.Unmarshal(text, plan); err != nil {
		return nil, fault.New(fault.Invalid, "the attempt's plan %s: %w", name, err)
	}
	if err := plan.Check(); err != nil {
		return nil, fmt.Errorf("the attempt's plan %s: %w", name, err)
	}
	return plan, nil
}

// indexOf reads a member's number.
func indexOf(text string, members int) (int, error) {
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= members {
		return 0, fault.New(fault.Invalid, "%s is %q and names none of the %d members", IndexEnv, text, members)
	}
	return i, nil
}

// makeDirs makes what is below the root. A root that is there already is that of a member
// that was started before: what it ran is not run a second time.
func (p Place) makeDirs(members int) error {
	switch err := os.Mkdir(p.rootDir(), 0o711); {
	case errors.Is(err, os.ErrExist):
		return fault.New(fault.Conflict, "this member was started before: %s is there", p.rootDir()).Advise("a pod of an attempt runs once: restartPolicy has to be Never")
	case err != nil:
		return fault.New(fault.Internal, "a place to work in: %w", err).Advise("mount an empty volume at %s that the pod's user may write to", p.Dir)
	}
	if err := os.MkdirAll(attempt.SlotsOf(p.rootDir()), 0o711); err != nil {
		return err
	}
	for i := range members {
		if err := os.Mkdir(slotOf(p.rootDir(), i).Dir, 0o711); err != nil {
			return err
		}
	}
	return p.linkCommands()
}
