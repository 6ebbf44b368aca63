package command

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Stock is site.Site's. It takes seven commands.
func (s *Site) Stock(ctx context.Context) (*fleet.Inventory, error) {
	inv := &fleet.Inventory{Taken: time.Now()}
	parts, err := s.records(ctx, "partition", "PartitionName")
	if err != nil {
		return nil, err
	}
	for _, r := range parts {
		inv.Partitions = append(inv.Partitions, partition(r))
	}
	ask := func(what string, f func() error) {
		if err := f(); err != nil {
			inv.Unknown = append(inv.Unknown, what+": "+err.Error())
		}
	}
	ask("reservations", func() error {
		all, err := s.records(ctx, "reservation", "ReservationName")
		for _, r := range all {
			inv.Reservations = append(inv.Reservations, reservation(r))
		}
		return err
	})
	ask("licenses", func() error {
		all, err := s.records(ctx, "license", "LicenseName")
		for _, r := range all {
			inv.Licenses = append(inv.Licenses, license(r))
		}
		return err
	})
	ask("qos", func() (err error) { inv.QOS, err = s.qos(ctx); return err })
	ask("associations", func() error {
		config, err := s.ask(ctx, "scontrol", "show", "config")
		if err != nil {
			return err
		}
		inv.Enforced = enforced(config)
		inv.Associations, err = s.associations(ctx, setting(config, "ClusterName"))
		return err
	})
	return inv, ctx.Err()
}

// record are the fields of a line of scontrol's.
type record map[string]string

// records asks scontrol for all of a kind, one a line.
func (s *Site) records(ctx context.Context, kind, first string) (out []record, err error) {
	text, err := s.ask(ctx, "scontrol", "--oneliner", "--all", "show", kind)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, first+"=") { // "No reservations in the system"
			continue
		}
		r := record{}
		for word := range strings.FieldsSeq(line) {
			if name, value, ok := strings.Cut(word, "="); ok {
				r[name] = value
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// count reads a number; UNLIMITED and what is none are 0.
func count(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func partition(r record) fleet.Partition {
	return fleet.Partition{
		Name: r["PartitionName"], Default: r["Default"] == "YES", State: r["State"], Nodes: none(r["Nodes"]),
		MaxTime: site.Seconds(r["MaxTime"]), DefaultTime: site.Seconds(r["DefaultTime"]), MinNodes: count(r["MinNodes"]), MaxNodes: count(r["MaxNodes"]),
		Accounts: site.Words(r["AllowAccounts"]), DenyAccounts: site.Words(r["DenyAccounts"]), AllowQOS: site.Words(r["AllowQos"]), DenyQOS: site.Words(r["DenyQos"]),
		Groups: site.Words(r["AllowGroups"]), QOS: strings.Join(site.Words(r["QoS"]), ""), Priority: count(r["PriorityTier"]),
	}
}

func reservation(r record) fleet.Reservation {
	return fleet.Reservation{
		Name: r["ReservationName"], State: r["State"], Start: moment(r["StartTime"]), End: moment(r["EndTime"]), Nodes: none(r["Nodes"]),
		Partition: none(r["PartitionName"]), Users: site.Words(r["Users"]), Accounts: site.Words(r["Accounts"]), Groups: site.Words(r["Groups"]),
		Flags: site.Words(r["Flags"]), Licenses: none(r["Licenses"]),
	}
}

func license(r record) fleet.License {
	return fleet.License{Name: r["LicenseName"], Total: int64(count(r["Total"])), Used: int64(count(r["Used"])), Reserved: int64(count(r["Reserved"]))}
}

// enforced are the rules of AccountingStorageEnforce; "none" where there are none, so that
// none are told from those that are not known.
func enforced(config []byte) []string {
	if w := site.Words(setting(config, "AccountingStorageEnforce")); len(w) > 0 {
		return w
	}
	return []string{"none"}
}

// setting is a value of scontrol show config's.
func setting(config []byte, name string) string {
	for line := range strings.Lines(string(config)) {
		if key, value, _ := strings.Cut(line, "="); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// list asks sacctmgr for fields of all of a kind.
func (s *Site) list(ctx context.Context, kind string, fields ...string) (out []record, err error) {
	text, err := s.ask(ctx, "sacctmgr", "--readonly", "--noheader", "--parsable", "show", kind, "format="+strings.Join(fields, ","))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		value := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(value) < len(fields) {
			return nil, fault.New(fault.Unavailable, "sacctmgr answered %q, of which %d fields were expected", line, len(fields))
		}
		r := record{}
		for i, name := range fields {
			r[name] = value[i]
		}
		out = append(out, r)
	}
	return out, nil
}

func (s *Site) qos(ctx context.Context) (out []fleet.QOS, err error) {
	all, err := s.list(ctx, "qos", "Name", "Priority", "Flags", "MaxWall", "MaxTRES", "MaxTRESPU", "MaxTRESPA", "MaxJobsPU", "MaxSubmitPU", "GrpTRES")
	for _, r := range all {
		out = append(out, fleet.QOS{
			Name: r["Name"], Priority: int64(count(r["Priority"])), Flags: site.Words(r["Flags"]), MaxTime: site.Seconds(r["MaxWall"]), MaxPerJob: r["MaxTRES"],
			MaxPerUser: r["MaxTRESPU"], MaxPerAccount: r["MaxTRESPA"], MaxJobsPerUser: count(r["MaxJobsPU"]), MaxSubmitPerUser: count(r["MaxSubmitPU"]), Group: r["GrpTRES"],
		})
	}
	return out, err
}

func (s *Site) associations(ctx context.Context, cluster string) (out []fleet.Association, err error) {
	users, err := s.list(ctx, "user", "User", "DefaultAccount")
	if err != nil {
		return nil, err
	}
	usual := map[string]string{}
	for _, r := range users {
		usual[r["User"]] = r["DefaultAccount"]
	}
	all, err := s.list(ctx, "assoc", "Cluster", "Account", "ParentName", "User", "Partition", "QOS", "Share", "MaxWall", "MaxTRES", "MaxJobs", "MaxSubmit", "GrpTRES")
	for _, r := range all {
		if !strings.EqualFold(r["Cluster"], cluster) { // one database serves many
			continue
		}
		out = append(out, fleet.Association{
			Account: r["Account"], Parent: r["ParentName"], User: r["User"], Partition: r["Partition"], Default: r["User"] != "" && usual[r["User"]] == r["Account"],
			QOS: site.Words(r["QOS"]), Shares: count(r["Share"]), MaxTime: site.Seconds(r["MaxWall"]), MaxPerJob: r["MaxTRES"],
			MaxJobs: count(r["MaxJobs"]), MaxSubmit: count(r["MaxSubmit"]), Group: r["GrpTRES"],
		})
	}
	return out, err
}

// everyone are the fields asked of squeue of everybody's jobs; the comment is last.
var everyone = []string{"UserName", "Partition", "State", "NumNodes", "NumCPUs", "NodeList", "tres-alloc", "tres-per-node", "tres-per-job", "Comment"}

// Everyone is site.Site's.
func (s *Site) Everyone(ctx context.Context) (out []site.Held, err error) {
	text, err := s.ask(ctx, "squeue", "--noheader", "--all", "--states=PENDING,RUNNING,SUSPENDED,CONFIGURING,COMPLETING", "--Format="+format(everyone))
	if err != nil {
		return nil, err
	}
	values := strings.Split(string(text), sep)
	for chunk := range slices.Chunk(values, len(everyone)) {
		if len(chunk) < len(everyone) {
			break // the end of the last line
		}
		f := record{}
		for i, name := range everyone {
			f[name] = strings.TrimSpace(chunk[i])
		}
		w, ok := site.ParseState(f["State"])
		if !ok {
			return nil, fault.New(fault.Unavailable, "squeue shows a job in state %q, which is none that is known", f["State"])
		}
		h := site.Held{User: f["UserName"], Partition: f["Partition"], Comment: none(f["Comment"]), Running: w.State != site.Pending, CPUs: count(f["NumCPUs"])}
		h.GPUs = site.GPUs(f["tres-alloc"], f["tres-per-node"], f["tres-per-job"], count(f["NumNodes"]))
		if h.Nodes, err = hosts(f["NodeList"]); err != nil {
			return nil, fault.New(fault.Unavailable, "the nodes of a job, as squeue has them: %w", err)
		}
		out = append(out, h)
	}
	return out, nil
}
