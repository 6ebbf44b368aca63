package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Verb is something that one can ask the server to do.
type Verb string

// The verbs.
const (
	Health Verb = "ask the health of"
	Info   Verb = "ask about"

	Submit Verb = "submit to"
	Advise Verb = "ask advice of"

	SeeJob         Verb = "see"
	SeeScript      Verb = "read the script of"
	SeeEnvironment Verb = "read the environment of"
	SeeLogs        Verb = "read the output of"
	Watch          Verb = "watch"
	SeeNodes       Verb = "see the nodes of"
	SeePools       Verb = "see the pools of"

	Cancel   Verb = "cancel"
	Hold     Verb = "hold"
	Release  Verb = "release"
	Requeue  Verb = "requeue"
	Signal   Verb = "signal"
	Update   Verb = "update"
	Top      Verb = "reorder"
	Exec     Verb = "run a command in"
	Save     Verb = "report a checkpoint of"
	Lease    Verb = "renew the lease of"
	HoldFirm Verb = "hold against its owner's will"
	Unhold   Verb = "release from an administrator's hold"
	Suspend  Verb = "suspend"
	Resume   Verb = "resume"
	Raise    Verb = "raise priority or limits of"
	Drain    Verb = "drain or resume nodes of"
	Check    Verb = "check the nodes of"
	SetPools Verb = "add, check or remove pools of"
	Move     Verb = "move running jobs of"
	HandOver Verb = "hand over machines of"
	Tokens   Verb = "manage a token of"
	Grant    Verb = "give rights to"
	Browse   Verb = "open the web console of"
	SeeAudit Verb = "read the audit of"

	SeePolicy Verb = "read the rules of"
	SetPolicy Verb = "set the rules of"

	Secrets Verb = "manage a secret of"

	SeeService Verb = "see the service of"
	SetService Verb = "change the service of"

	SeeSchedule Verb = "see the schedule of"
	SetSchedule Verb = "change the schedule of"

	Backup    Verb = "back up"
	AskWhatIf Verb = "ask what would be of"
	TakeState Verb = "take a snapshot of"
	Gateway   Verb = "be a gateway of"
	Metrics   Verb = "read the metrics of"
	Profile   Verb = "profile"
)

// Who says how little suffices to do something. An administrator may do all.
type Who uint8

// From the least to the most.
const (
	Nobody   Who = iota // no identity is needed
	Anyone              // whoever proved who he is
	Viewer              // as Anyone; the owner alone where jobs are private
	Owner               // the owner of the object
	Gateways            // tokens with the role gateway
	Admin               // administrators
)

// String is the word of the documentation.
func (w Who) String() string {
	return [...]string{"everybody", "known users", "known users (private: owner)", "owner", "gateways and administrators", "administrators"}[w]
}

// Rule is one line of the table.
type Rule struct {
	Verb Verb
	Who  Who
	Why  string // for the documentation
}

var rules = []Rule{
	{Health, Nobody, "a probe has no identity; it learns only whether the server is ready"},
	{Info, Nobody, "version and API; known users see more"},

	{Submit, Anyone, "the job's owner is the user who asks, whatever the request says"},
	{Advise, Anyone, "the server keeps nothing"},

	{SeeJob, Viewer, "lists leave out jobs that the user may not see"},
	{Watch, Viewer, "events leave out jobs that the user may not see"},
	{SeeNodes, Anyone, "without the names of jobs that the user may not see"},
	{SeePools, Anyone, "without their settings, which say how to reach the engines"},
	{SeeScript, Owner, "scripts hold paths and sometimes secrets"},
	{SeeEnvironment, Owner, "environments hold secrets"},
	{SeeLogs, Owner, "the server opens files with the owner's rights, never its own"},

	{Cancel, Owner, ""},
	{Hold, Owner, ""},
	{Release, Owner, "only from the owner's own hold"},
	{Requeue, Owner, ""},
	{Signal, Owner, ""},
	{Update, Owner, "only changes that give the job no more than it has"},
	{Top, Owner, "only among the owner's own jobs"},
	{Save, Owner, ""},
	{Lease, Owner, "an allocation ends when its client is gone"},
	{Exec, Owner, "the command runs with the owner's rights inside the job"},

	{HoldFirm, Admin, "a hold that the owner cannot release"},
	{Unhold, Admin, ""},
	{Suspend, Admin, "a suspended job keeps its nodes and devices"},
	{Resume, Admin, ""},
	{Raise, Admin, "higher priority, nice below zero, a longer time limit of a running job"},
	{Drain, Admin, ""},
	{Check, Admin, "programs of the site run; everybody may see what the last checks saw"},
	{SetPools, Admin, "the server opens engines with its own rights"},
	{Move, Admin, "as the site's rules propose"},
	{HandOver, Admin, "from one pool to another, and back"},

	{Secrets, Owner, "the caller's own alone, administrators included; values are never sent back"},
	{SeeService, Viewer, "lists leave out services that the user may not see"},
	{SetService, Owner, "scale, update, undo, stop; a new revision comes by a submission"},
	{SeeSchedule, Viewer, "lists leave out schedules that the user may not see"},
	{SetSchedule, Owner, "suspend, resume, run now, stop; a change comes by a submission; the runs are their owner's jobs, whoever begins one"},

	{Tokens, Owner, "list, make, revoke; a token made with a token ends no later than that one"},
	{Grant, Admin, "a token for somebody else, or one with an administrator's rights"},
	{Browse, Anyone, "a browser is signed in as the user who asks, with no more rights; a session makes no other"},
	{SeeAudit, Admin, "it shows what everybody did"},
	{SeePolicy, Anyone, "the users of a site may know who may use how much"},
	{SetPolicy, Admin, ""},
	{Backup, Admin, "a backup contains all scripts, environments and uploaded directories"},
	{AskWhatIf, Anyone, "the server keeps nothing; it counts jobs that the user may not see without naming them"},
	{TakeState, Admin, "it names the jobs of all users; it contains no scripts, commands or environments"},
	{Gateway, Gateways, "a token with the role gateway may do nothing else; routes have the addresses of all replicas; a load that is not true ends a drain early"},
	{Metrics, Anyone, "counts, without names of users or jobs"},
	{Profile, Admin, "profiles show memory"},
}

// Rules returns a copy of the table.
func Rules() []Rule { return slices.Clone(rules) }

var byVerb = func() map[Verb]Rule {
	m := map[Verb]Rule{}
	for _, r := range rules {
		m[r.Verb] = r
	}
	return m
}()

func ruleOf(v Verb) (Rule, bool) {
	r, ok := byVerb[v]
	return r, ok
}

// Document writes the table in Markdown. routes lists the routes that ask for each
// verb.
func Document(routes map[Verb][]string) string {
	var b strings.Builder
	b.WriteString("| right to … | who has it | routes | remarks |\n|---|---|---|---|\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Verb, r.Who, strings.Join(routes[r.Verb], "<br>"), r.Why)
	}
	return b.String()
}
