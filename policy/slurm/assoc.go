package slurm

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/policy"
)

// assocs is what a dump has said so far.
type assocs struct {
	parent string // of the accounts and users that follow
	users  []user // in the order of the dump
}

// user is an association, with its account.
type user struct {
	account string
	account.User
}

// readDump reads what sacctmgr dump printed.
func (im *importer) readDump(f File) {
	for i, text := range strings.Split(strings.ReplaceAll(f.Text, "\r\n", "\n"), "\n") {
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		d, ok := dumpLineOf(f.Name, i+1, text)
		head := setting{file: f.Name, line: i + 1, key: text, alone: true}
		if !ok {
			im.refuseSetting(head, "this is no line of sacctmgr dump, whose lines look like: Account - 'nlp':Fairshare=1")
			continue
		}
		head.key = d.kind + " " + d.name
		switch d.kind {
		case "cluster":
			im.noteElsewhere(head, "name in cox.yaml (--config writes it, from slurm.conf)")
			im.ofRoot(d.options)
		case "parent":
			im.noteKept(head)
			im.assocs.parent = d.name
		case "account":
			im.readAccount(head, &d)
		case "user":
			im.readUser(head, &d)
		case "qos":
			im.noteKept(head)
			q := im.qosNamed(d.name)
			im.defined[d.name] = true
			for _, s := range d.options {
				im.ofQOS(q, s)
			}
		default:
			im.refuseSetting(head, "sacctmgr dump writes Cluster, Parent, Account, User and QOS lines, and this is none of them")
			for _, s := range d.options {
				im.refuseSetting(s, "the kind of its line is not known")
			}
		}
	}
}

// ofRoot reads the options of a cluster, which are those of the root account.
func (im *importer) ofRoot(options []setting) {
	root := account.Account{Name: account.RootName}
	for _, s := range options {
		switch strings.ToLower(s.key) {
		case "fairshare", "classification", "flags", "rpc":
			im.noteVerdict(s, policy.Ignored, "a server has one cluster")
		default:
			im.ofAssociation(s, &root.Shares, &root.Priority, &root.QOS, &root.Default, &root.Limits)
		}
	}
	if len(root.QOS) > 0 || root.Default != "" || root.Priority > 0 || hasLimits(&root.Limits) {
		im.p.Accounts = append(im.p.Accounts, root)
	}
}

func hasLimits(l *account.Limits) bool { return !reflect.ValueOf(l).Elem().IsZero() }

func (im *importer) accountNamed(name string) *account.Account {
	i := slices.IndexFunc(im.p.Accounts, func(a account.Account) bool { return a.Name == name })
	if i < 0 {
		im.p.Accounts = append(im.p.Accounts, account.Account{Name: name})
		i = len(im.p.Accounts) - 1
	}
	return &im.p.Accounts[i]
}

func (im *importer) readAccount(head setting, d *dumpLine) {
	im.noteKept(head)
	a := im.accountNamed(d.name)
	if d.name != account.RootName {
		a.Parent = cmp.Or(im.assocs.parent, account.RootName)
	}
	for _, s := range d.options {
		switch strings.ToLower(s.key) {
		case "description":
			a.Note = s.value
			im.noteKept(s)
		case "organization":
			im.noteVerdict(s, policy.Ignored, "a note about the account; its description is kept")
		default:
			im.ofAssociation(s, &a.Shares, &a.Priority, &a.QOS, &a.Default, &a.Limits)
		}
	}
}

func (im *importer) readUser(head setting, d *dumpLine) {
	at := cmp.Or(im.assocs.parent, account.RootName)
	if d.name == "root" && at == account.RootName {
		im.noteVerdict(head, policy.Ignored, "root may do everything, and needs no account")
		for _, s := range d.options {
			im.noteVerdict(s, policy.Ignored, "root may do everything, and needs no account")
		}
		return
	}
	u := user{account: at, User: account.User{Name: d.name}}
	partition := slices.ContainsFunc(d.options, func(s setting) bool { return s.hasKey("partition") && !isUnlimited(s.value) })
	twice := slices.ContainsFunc(im.assocs.users, func(o user) bool { return o.account == at && o.Name == d.name })
	if partition || twice {
		im.refuseSetting(head, "limits of a user in one partition cannot be written: give the partition a QOS, and write the limits of each user there (limits.user)")
		for _, s := range d.options {
			im.refuseSetting(s, "belongs to the user in one partition, above")
		}
		return
	}
	im.noteKept(head)
	for _, s := range d.options {
		switch strings.ToLower(s.key) {
		case "defaultaccount":
			u.Default = s.value == at
			im.noteKept(s)
		case "adminlevel":
			im.noteAdmin(d.name, s)
		case "coordinator":
			im.refuseSetting(s, "only administrators change rules: add the user to auth.admins in cox.yaml if that is meant")
		case "defaultwckey", "wckeys":
			im.noteVerdict(s, policy.Ignored, "Coxswain has no workload keys; jobs may carry a comment instead")
		case "defaultqos":
			im.userDefault(&u, s)
		default:
			var none string
			im.ofAssociation(s, &u.Shares, &u.Priority, &u.QOS, &none, &u.Limits)
		}
	}
	im.assocs.users = append(im.assocs.users, u)
}

// noteAdmin notes an administrator of Slurm's.
func (im *importer) noteAdmin(name string, s setting) {
	if strings.EqualFold(s.value, "none") {
		im.noteKept(s)
		return
	}
	im.server.admins = append(im.server.admins, name)
	im.noteElsewhere(s, "auth.admins in cox.yaml (--config writes it as a comment)")
}

// userDefault: a default of a user alone is said by the order of his QOS.
func (im *importer) userDefault(u *user, s setting) {
	if isUnlimited(s.value) {
		im.noteKept(s)
		return
	}
	im.refuseSetting(s, "a user has no default QOS of his own: write default_qos in his account, or put this QOS first in his qos")
}

// ofAssociation is one option of an account or a user.
func (im *importer) ofAssociation(s setting, shares *account.Shares, priority *uint32, qos *[]string, fallback *string, l *account.Limits) {
	switch strings.ToLower(s.key) {
	case "fairshare", "shares", "rawshares":
		switch v := strings.ToLower(s.value); {
		case v == "parent" || v == "2147483647": // as dumps have it
			*shares = account.ParentShares
			im.noteKept(s)
		case v == "0":
			*shares = account.NoShares
			im.noteKept(s)
		default:
			im.readNumber(s, 31, func(n int64) { *shares = account.Shares(n) })
		}
	case "priority":
		im.readNumber(s, 32, func(n int64) { *priority = uint32(n) })
	case "qos", "qoslevel":
		*qos = splitCommas(s.value)
		for _, q := range *qos {
			im.qosNamed(q)
		}
		im.noteKept(s)
	case "defaultqos":
		if !isUnlimited(s.value) {
			*fallback = s.value
			im.qosNamed(s.value)
		}
		im.noteKept(s)
	case "description", "comment", "flags", "lineage", "id":
		im.noteVerdict(s, policy.Ignored, "a note without effect on scheduling")
	default:
		if !im.readLimit(l, s, false) {
			im.refuseSetting(s, "%s", noOption("an account or user", s.key))
		}
	}
}

// dumped are the options that sacctmgr dump of 22.05 to 25.05 writes.
var dumped = strings.Fields(`AdminLevel Classification Comment Coordinator DefaultAccount DefaultQOS DefaultWCKey Description Fairshare Flags GraceTime GrpJobs GrpJobsAccrue
	GrpSubmitJobs GrpTRES GrpTRESMins GrpTRESRunMins GrpWall LimitFactor MaxJobs MaxJobsAccrue MaxJobsAccruePA MaxJobsAccruePU MaxJobsPA MaxJobsPU MaxSubmitJobs MaxSubmitJobsPA
	MaxSubmitJobsPU MaxTRESMinsPerJob MaxTRESPerAccount MaxTRESPerJob MaxTRESPerNode MaxTRESPerUser MaxTRESRunMins MaxTRESRunMinsPerAccount MaxTRESRunMinsPerUser
	MaxWallDurationPerJob MinPrioThresh MinTRESPerJob Organization Partition Preempt PreemptExemptTime PreemptMode Priority QOS UsageFactor UsageThreshold WCKeys`)

// noOption says that something has no such option, and which one may be meant.
func noOption(what, key string) string {
	text := what + " has no such option"
	if near := nearestName(key, dumped); near != "" && !strings.EqualFold(near, key) {
		text += "; did you mean " + near + "?"
	}
	return text
}

// readLimit reads an option that is a limit; false if it is none.
func (im *importer) readLimit(l *account.Limits, s setting, ofQOS bool) bool {
	tres := func(to *account.TRES) bool { im.readTRES(s, func(t account.TRES) { *to = t }); return true }
	count := func(to **int64) bool { im.readNumber(s, 48, func(n int64) { *to = &n }); return true }
	wall := func(to **account.Duration) bool {
		im.readDuration(s, func(d account.Duration) { *to = &d })
		return true
	}
	switch strings.ToLower(s.key) {
	case "grptres":
		return tres(&l.Group)
	case "grptresmins":
		return tres(&l.GroupMinutes)
	case "grptresrunmins":
		return tres(&l.GroupRunMinutes)
	case "grpjobs":
		return count(&l.GroupJobs)
	case "grpsubmit", "grpsubmitjobs":
		return count(&l.GroupSubmitted)
	case "grpjobsaccrue":
		return count(&l.GroupAccruing)
	case "grpwall":
		return wall(&l.GroupWall)
	case "maxtres", "maxtresperjob", "maxtrespj":
		return tres(&l.Job)
	case "maxtrespernode", "maxtrespn":
		return tres(&l.Node)
	case "maxtresmins", "maxtresminsperjob", "maxtresminspj":
		return tres(&l.JobMinutes)
	case "maxwall", "maxwalldurationperjob", "maxwallduration", "maxwallpj":
		return wall(&l.Wall)
	case "minpriothres", "minpriothresh", "minpriothreshold":
		im.readNumber(s, 32, func(n int64) { v := uint32(n); l.LeastPriority = &v })
		return true
	}
	if !ofQOS {
		switch strings.ToLower(s.key) {
		case "maxjobs":
			return count(&l.Jobs)
		case "maxsubmit", "maxsubmitjobs":
			return count(&l.Submitted)
		case "maxjobsaccrue":
			return count(&l.Accruing)
		}
		return false
	}
	switch strings.ToLower(s.key) {
	case "maxtresperuser", "maxtrespu":
		return tres(&l.User)
	case "maxtresperaccount", "maxtrespa", "maxtresperacct":
		return tres(&l.Account)
	case "maxtresrunminsperuser", "maxtresrunminspu":
		return tres(&l.UserRunMinutes)
	case "maxtresrunminsperaccount", "maxtresrunminspa":
		return tres(&l.AcctRunMinutes)
	case "maxjobsperuser", "maxjobspu", "maxjobs":
		return count(&l.UserJobs)
	case "maxjobsperaccount", "maxjobspa":
		return count(&l.AcctJobs)
	case "maxsubmitjobsperuser", "maxsubmitpu", "maxsubmitjobspu", "maxsubmitjobs", "maxsubmit":
		return count(&l.UserSubmitted)
	case "maxsubmitjobsperaccount", "maxsubmitpa", "maxsubmitjobspa":
		return count(&l.AcctSubmitted)
	case "maxjobsaccrueperuser", "maxjobsaccruepu":
		return count(&l.UserAccruing)
	case "maxjobsaccrueperaccount", "maxjobsaccruepa":
		return count(&l.AcctAccruing)
	case "mintres", "mintresperjob", "mintrespj":
		return tres(&l.Least)
	}
	return false
}

func (im *importer) qosNamed(name string) *account.QOS {
	q := im.qos[name]
	if q == nil {
		q = &account.QOS{Name: name}
		im.qos[name] = q
	}
	return q
}

// ofQOS is one option of a QOS.
func (im *importer) ofQOS(q *account.QOS, s setting) {
	switch strings.ToLower(s.key) {
	case "priority":
		im.readNumber(s, 32, func(n int64) { q.Priority = uint32(n) })
	case "description", "descr":
		q.Note = s.value
		im.noteKept(s)
	case "preempt":
		q.Preempts = splitCommas(s.value)
		for _, n := range q.Preempts {
			im.qosNamed(n)
		}
		im.noteKept(s)
	case "preemptmode":
		im.preemptMode(s, &q.PreemptMode)
	case "gracetime":
		im.readSeconds(s, func(d account.Duration) { q.Grace = d })
	case "preemptexempttime":
		im.readDuration(s, func(d account.Duration) { q.Exempt = d })
	case "usagefactor":
		im.readFactor(s, &q.UsageFactor)
	case "usagethreshold", "usagethres":
		im.thresholds[q.Name] = s // what it means the flags say, which may come later
	case "limitfactor":
		im.readFactor(s, &q.LimitFactor)
	case "flags":
		im.qosFlags(q, s)
	default:
		if !im.readLimit(&q.Limits, s, true) {
			im.refuseSetting(s, "%s", noOption("a QOS", s.key))
		}
	}
}

func (im *importer) readFactor(s setting, to **float64) {
	if isUnlimited(s.value) {
		im.noteKept(s)
		return
	}
	f, err := strconv.ParseFloat(s.value, 64)
	if err != nil || !(f >= 0 && f < 1e9) {
		im.refuseUnreadable(s, "a factor")
		return
	}
	*to = &f
	im.noteKept(s)
}

func (im *importer) qosFlags(q *account.QOS, s setting) {
	known := allowedWords(account.QOS{}, "Flags")
	var left []string
	for _, f := range splitCommas(s.value) {
		if name := flagName(f); name == "enforce_usage_threshold" {
			im.enforces[q.Name] = true
		} else if slices.Contains(known, name) {
			q.Flags = append(q.Flags, name)
		} else if !isUnlimited(f) {
			left = append(left, unsupportedFlag(f))
		}
	}
	if len(left) > 0 {
		im.noteAbout(s, "without %s", strings.Join(left, "; without "))
		return
	}
	im.noteKept(s)
}

// readQOSTable reads sacctmgr show qos -P: names in the first line, a QOS in each other.
func (im *importer) readQOSTable(f File) {
	var names []string
	for i, line := range strings.Split(strings.ReplaceAll(f.Text, "\r\n", "\n"), "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "|")
		if names == nil {
			names = cells
			continue
		}
		head := setting{file: f.Name, line: i + 1, key: "QOS " + cells[0], alone: true}
		if cells[0] == "" || len(cells) > len(names) {
			im.refuseSetting(head, "the line has more columns than the first line of the table, or no name")
			continue
		}
		im.noteKept(head)
		q := im.qosNamed(cells[0])
		im.defined[cells[0]] = true
		for j := 1; j < len(cells); j++ {
			if s := (setting{file: f.Name, line: i + 1, key: names[j], value: cells[j]}); s.value != "" {
				im.ofQOS(q, s)
			}
		}
	}
}
