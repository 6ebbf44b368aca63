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
	HoldFirm Verb = "hold against its owner's will"
	Unhold   Verb = "release from an administrator's hold"
	Suspend  Verb = "suspend"
	Resume   Verb = "resume"
	Raise    Verb = "raise priority or limits of"
	Drain    Verb = "drain or resume nodes of"
	SetPools Verb = "add, check or remove pools of"
	Move     Verb = "move running jobs of"
	Tokens   Verb = "manage a token of"
	Grant    Verb = "give rights to"
	SeeAudit Verb = "read the audit of"

	SeePolicy Verb = "read the rules of"
	SetPolicy Verb = "set the rules of"

	Backup    Verb = "back up"
	AskWhatIf Verb = "ask what would be of"
	TakeState Verb = "take a snapshot of"
	Metrics   Verb = "read the metrics of"
	Profile   Verb = "profile"
)

// Who says how little suffices to do something. An administrator may do all.
type Who uint8

// From the least to the most.
const (
	Nobody Who = iota // no identity is needed
	Anyone            // whoever proved who he is
	Viewer            // as Anyone; the owner alone where jobs are private
	Owner             // the owner of the object
	Admin             // administrators
)

// String is the word of the documentation.
func (w Who) String() string {
	return [...]string{"everybody", "known users", "known users (private: owner)", "owner", "administrators"}[w]
}

// Rule is one line of the table.
type Rule struct {
	Verb Verb
	Who  Who
	Why  string // for the documentation
}

var rules = []Rule{
	{Health, Nobody, "a probe has no identity; it learns ready or not"},
	{Info, Nobody, "version and API; more is told to those who are known"},

	{Submit, Anyone, "the owner is who asks, whatever the request says"},
	{Advise, Anyone, "nothing is kept"},

	{SeeJob, Viewer, "lists leave out what may not be seen"},
	{Watch, Viewer, "events leave out what may not be seen"},
	{SeeNodes, Anyone, "names of jobs that may not be seen are left out"},
	{SeePools, Anyone, "without their settings, which say how engines are reached"},
	{SeeScript, Owner, "scripts hold paths and sometimes secrets"},
	{SeeEnvironment, Owner, "environments hold secrets"},
	{SeeLogs, Owner, "files are opened with the owner's rights, never the server's"},

	{Cancel, Owner, ""},
	{Hold, Owner, ""},
	{Release, Owner, "of the owner's own hold"},
	{Requeue, Owner, ""},
	{Signal, Owner, ""},
	{Update, Owner, "of what does not take more than it was given"},
	{Top, Owner, "among the owner's own jobs"},
	{Save, Owner, ""},
	{Exec, Owner, "runs with the owner's rights inside of the job"},

	{HoldFirm, Admin, "a hold that the owner cannot release"},
	{Unhold, Admin, ""},
	{Suspend, Admin, "what is suspended keeps what it holds"},
	{Resume, Admin, ""},
	{Raise, Admin, "priority up, nice below zero, a longer time limit of a running job"},
	{Drain, Admin, ""},
	{SetPools, Admin, "engines are opened with the server's rights"},
	{Move, Admin, "as the site's rules propose it"},

	{Tokens, Owner, "list, make, revoke; what a token makes ends no later than itself"},
	{Grant, Admin, "a token for somebody else, or one with an administrator's rights"},
	{SeeAudit, Admin, "it shows what everybody did"},
	{SeePolicy, Anyone, "who may use how much is no secret among those who share it"},
	{SetPolicy, Admin, ""},
	{Backup, Admin, "it holds all scripts, environments and directories that came with jobs"},
	{AskWhatIf, Anyone, "nothing is kept; jobs that may not be seen are counted and not named"},
	{TakeState, Admin, "it names everybody's jobs; no scripts, commands or environments are in it"},
	{Metrics, Anyone, "counts without names of users or jobs"},
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
	b.WriteString("| to … | suffices | routes | |\n|---|---|---|---|\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Verb, r.Who, strings.Join(routes[r.Verb], "<br>"), r.Why)
	}
	return b.String()
}
