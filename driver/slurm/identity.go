package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Mode says as whom jobs are handed over.
type Mode string

// The modes. Who does what for each is the way in's to know (driver/slurm/command,
// driver/slurm/rest); here it is said which calls are made as whom.
const (
	// AsService hands all jobs over as whoever the way in is to the cluster.
	AsService Mode = ""
	// AsUID has root say whose a job is (sbatch --uid). Slurm checks root's rights then,
	// not the owner's.
	AsUID Mode = "uid"
	// AsOwner runs commands as the owner: root of this machine changes its user, elsewhere
	// words such as "sudo -n -u %u --" do.
	AsOwner Mode = "owner"
	// AsLogin runs commands over SSH through a login of the owner's.
	AsLogin Mode = "login"
	// AsToken calls slurmrestd with a token of the owner's.
	AsToken Mode = "token"
)

// Modes are all of them.
var Modes = []Mode{AsService, AsUID, AsOwner, AsLogin, AsToken}

// Identity says whose the jobs are in Slurm.
type Identity struct {
	Mode Mode
	// Root says that jobs which root submitted are handed over as root's; else they are
	// refused, in every mode but AsService.
	Root bool
}

// person is a user's name as every system takes it, that no command or file name reads as
// something else.
var person = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// owners knows whose the jobs are in Slurm: as whom a job is submitted, and by which way in it is
// changed then.
type owners struct {
	identity   Identity
	privileged bool // the way in may change everybody's jobs
	pool       string
	site       site.Site

	mu         sync.Mutex
	people     map[string]site.Person // owners whom the cluster knows
	submitters map[string]bool        // whose jobs were handed over since the engine was opened; "": the way in's own
}

func newOwners(c *Config) *owners {
	return &owners{identity: c.Identity, privileged: c.Privileged, pool: c.Pool, site: c.Site, people: map[string]site.Person{}, submitters: map[string]bool{}}
}

// noteSubmitter notes that jobs are handed over as a user's.
func (u *owners) noteSubmitter(user string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.submitters[user] = true
}

// sortedSubmitters returns the users whose jobs were handed over.
func (u *owners) sortedSubmitters() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.submitters))
}

// uidOf returns the number of an owner on the cluster; 0: nobody has asked.
func (u *owners) uidOf(user string) uint32 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.people[user].UID
}

// submitUser is whom a job's submission is made as; empty: as whoever the way in is.
func (u *owners) submitUser(o job.Owner) string {
	if u.identity.Mode == AsService {
		return ""
	}
	return o.User
}

// checkMayOwn refuses an owner whom no job is handed over for.
func (u *owners) checkMayOwn(o job.Owner) error {
	if u.identity.Mode == AsService {
		return nil
	}
	switch {
	case o.User == "":
		return fault.New(fault.Permission, "the job has no owner, and pool %s hands jobs over as their owners", u.pool)
	case !person.MatchString(o.User):
		return fault.New(fault.Permission, "%.80q is no name of a user that can be handed on to pool %s", o.User, u.pool)
	case (o.UID == 0 || o.User == "root") && !u.identity.Root:
		return fault.New(fault.Permission, "jobs of root are not handed over to pool %s", u.pool).Advise("submit it as somebody else; or allow root's jobs in the settings of the pool")
	}
	return nil
}

// lookUpPerson is a job's owner as the cluster has him: who it has not has no job handed over, for
// slurmctld may take it and never begin it (by slurmrestd it does, as nobody's).
func (u *owners) lookUpPerson(ctx context.Context, name string) (site.Person, error) {
	u.mu.Lock()
	p, ok := u.people[name]
	u.mu.Unlock()
	if ok {
		return p, nil
	}
	t, ok := u.site.(site.Teller)
	if !ok {
		return site.Person{}, nil
	}
	p, err := t.Person(ctx, name)
	switch {
	case fault.KindOf(err) == fault.Unsupported:
		return site.Person{}, nil // found out when Slurm has the job: taken
	case fault.KindOf(err) == fault.NotFound:
		return p, fault.New(fault.Permission, "user %s submitted it, whom the cluster of pool %s does not know: %w", name, u.pool, err).
			Advise("have an account made for %s there, or submit to another pool", name)
	case err != nil:
		return p, err
	case p.UID == 0 && !u.identity.Root:
		return p, fault.New(fault.Permission, "user %s is root on the cluster of pool %s, and jobs of root are not handed over", name, u.pool)
	}
	u.mu.Lock()
	u.people[name] = p
	u.mu.Unlock()
	return p, nil
}

// siteToChange is the way in for what changes an attempt's job: the owner's own where the driver may
// have no right to.
func (u *owners) siteToChange(user string) site.Site {
	if u.privileged {
		return u.site
	}
	return u.siteAs(user)
}

// siteAs is the way in with the rights of a job's owner, where there is one.
func (u *owners) siteAs(user string) site.Site {
	if a, ok := u.site.(site.Acting); ok && user != "" && person.MatchString(user) {
		return a.As(user)
	}
	return u.site
}

// ownerMismatch says that Slurm has an attempt's job as somebody else's; empty: it has not.
func (u *owners) ownerMismatch(a *attempt, j *site.Job) string {
	if a.user == "" || j.User == "" || j.User == a.user {
		return ""
	}
	u.mu.Lock()
	p, known := u.people[a.user]
	u.mu.Unlock()
	n, err := strconv.ParseUint(j.User, 10, 32)
	if known && err == nil && uint32(n) == p.UID { // whoever asked does not know the name
		return ""
	}
	return fmt.Sprintf("user %s submitted it, and Slurm has it as a job of %s: does the cluster of pool %s know %[1]s?", a.user, j.User, u.pool)
}

// endMisowned ends an attempt whose job Slurm has as somebody else's and that has not begun: it
// never does then. One that has begun runs as its owner, for its script has looked.
func (e *Engine) endMisowned(a *attempt, j *site.Job) (done bool, err error) {
	why := e.owners.ownerMismatch(a, j)
	if why == "" || a.poll.running { // the attempt's goroutine alone has it
		return false, nil
	}
	ctx, cancel := e.controller.callContext()
	defer cancel()
	held, err := e.fenceLock(ctx, a, a.base)
	if err != nil {
		return false, err
	}
	if held != fenced {
		a.poll.running = true
		return false, nil
	}
	if now, err := e.controller.currentJob(ctx, a); err != nil {
		return false, err
	} else if now != nil && !now.State.Final() {
		if err := e.cfg.Site.End(ctx, a.id); fault.KindOf(err) == fault.Unavailable {
			return false, err
		} else if err != nil {
			why += fmt.Sprintf("; an administrator has to end job %d there: %v", a.id, err)
		}
	}
	return true, e.endUnstarted(a, engine.LaunchFailed, why)
}

// jobUser is a job's user, where jobs are their owners'.
func (u *owners) jobUser(j *site.Job) string {
	if u.identity.Mode == AsService {
		return ""
	}
	return j.User
}

// findings says whose the jobs will be, and whether that can work.
func (u *owners) findings(ctx context.Context) ([]engine.Finding, error) {
	finding := func(s engine.FindingState, mend, format string, args ...any) engine.Finding {
		return engine.Finding{What: "identity", State: s, Text: fmt.Sprintf(format, args...), Mend: mend}
	}
	t, ok := u.site.(site.Teller)
	if !ok {
		return []engine.Finding{finding(engine.Warning, "", "this way in does not say whose the jobs will be")}, nil
	}
	me, err := t.Me(ctx)
	if fault.KindOf(err) == fault.Unsupported || errors.Is(err, errors.ErrUnsupported) {
		return []engine.Finding{finding(engine.Warning, "", "%v", err)}, nil
	}
	if err != nil {
		return nil, err
	}
	found := []engine.Finding{u.modeFinding(me)}
	k, ok := u.site.(site.Looker)
	if !ok || u.identity.Mode == AsService {
		return found, nil
	}
	l, err := k.Look(ctx)
	if err != nil {
		return found, err
	}
	set := func(name, word string) bool { return strings.Contains(strings.ToLower(l.Settings[name]), word) }
	if u.identity.Mode == AsUID && set("AuthType", "auth/slurm") && set("AuthInfo", "use_client_ids") {
		found = append(found, finding(engine.Missing, "--set identity=owner", "this Slurm (AuthInfo=use_client_ids) runs what root submits with sbatch --uid as root: nothing of it would be run"))
	}
	if !me.Operator && hidesJobs(l) {
		found = append(found, finding(engine.Missing, "sacctmgr modify user "+me.Name+" set adminlevel=Operator", "Slurm shows %s no jobs of others (PrivateData=%s): what was handed over would be taken for lost", me.Name, l.Settings["PrivateData"]))
	}
	return found, nil
}

// hidesJobs reports whether Slurm shows jobs to their users and to operators alone.
func hidesJobs(l *site.Look) bool {
	of := strings.ToLower(l.Settings["PrivateData"])
	return strings.Contains(of, "jobs") || strings.Contains(of, "all")
}

// whyHidden says why Slurm may have a user's job and not show it, as from some day on; empty: it
// would.
func (u *owners) whyHidden(ctx context.Context, user string) (string, error) {
	t, tells := u.site.(site.Teller)
	k, looks := u.site.(site.Looker)
	if user == "" || !tells || !looks {
		return "", nil
	}
	l, err := k.Look(ctx)
	if err != nil || !hidesJobs(l) {
		return "", err
	}
	me, err := t.Me(ctx)
	if err != nil || me.Operator || me.Name == user {
		return "", err
	}
	return fmt.Sprintf("%s sees no jobs of others there (PrivateData=%s)", me.Name, l.Settings["PrivateData"]), nil
}

// asOwners are the settings that have jobs handed over as their owners where the way in is
// somebody who may become them.
const asOwners = "--set identity=owner --set become=sudo,-n,-u,%u,--"

// modeFinding is the finding of the mode.
func (u *owners) modeFinding(me site.Person) engine.Finding {
	f := engine.Finding{What: "identity", State: engine.Found}
	switch m := u.identity.Mode; {
	case m == AsService && me.UID == 0:
		f.State, f.Text = engine.Missing, "jobs would run as root on the cluster, whoever submits them"
		f.Mend = "--set identity=owner"
	case m == AsService:
		f.State, f.Text = engine.Warning, fmt.Sprintf("all jobs run as %s on the cluster, whoever submits them", me.Name)
		f.Mend = asOwners
	case m == AsUID && me.UID != 0:
		f.State, f.Text = engine.Missing, fmt.Sprintf("sbatch --uid is for root, and the cluster is reached as %s", me.Name)
		f.Mend = asOwners
	default:
		f.Text = fmt.Sprintf("jobs run as their owners (%s); the cluster is watched as %s", m, me.Name)
	}
	return f
}
