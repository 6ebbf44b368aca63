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
	parts, err := s.listRecords(ctx, "partition", "PartitionName")
	if err != nil {
		return nil, err
	}
	for _, r := range parts {
		inv.Partitions = append(inv.Partitions, parsePartition(r))
	}
	ask := func(what string, f func() error) {
		if err := f(); err != nil {
			inv.Unknown = append(inv.Unknown, what+": "+err.Error())
		}
	}
	ask("reservations", func() error {
		all, err := s.listRecords(ctx, "reservation", "ReservationName")
		for _, r := range all {
			inv.Reservations = append(inv.Reservations, parseReservation(r))
		}
		return err
	})
	ask("licenses", func() error {
		all, err := s.listRecords(ctx, "license", "LicenseName")
		for _, r := range all {
			inv.Licenses = append(inv.Licenses, parseLicense(r))
		}
		return err
	})
	ask("qos", func() (err error) { inv.QOS, err = s.listQOS(ctx); return err })
	ask("associations", func() error {
		config, err := s.runQuery(ctx, "scontrol", "show", "config")
		if err != nil {
			return err
		}
		inv.Enforced = enforcedRules(config)
		inv.Associations, err = s.listAssociations(ctx, configValue(config, "ClusterName"))
		return err
	})
	return inv, ctx.Err()
}

// record are the fields of a line of scontrol's.
type record map[string]string

// listRecords asks scontrol for all of a kind, one a line.
func (s *Site) listRecords(ctx context.Context, kind, first string) (out []record, err error) {
	text, err := s.runQuery(ctx, "scontrol", "--oneliner", "--all", "show", kind)
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

// parseCount reads a number; UNLIMITED and what is none are 0.
func parseCount(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func parsePartition(r record) fleet.Partition {
	return fleet.Partition{
		Name: r["PartitionName"], Default: r["Default"] == "YES", State: r["State"], Nodes: emptyIfNone(r["Nodes"]),
		MaxTime: site.Seconds(r["MaxTime"]), DefaultTime: site.Seconds(r["DefaultTime"]), MinNodes: parseCount(r["MinNodes"]), MaxNodes: parseCount(r["MaxNodes"]),
		Accounts: site.Words(r["AllowAccounts"]), DenyAccounts: site.Words(r["DenyAccounts"]), AllowQOS: site.Words(r["AllowQos"]), DenyQOS: site.Words(r["DenyQos"]),
		Groups: site.Words(r["AllowGroups"]), QOS: strings.Join(site.Words(r["QoS"]), ""), Priority: parseCount(r["PriorityTier"]),
	}
}

func parseReservation(r record) fleet.Reservation {
	return fleet.Reservation{
		Name: r["ReservationName"], State: r["State"], Start: parseTime(r["StartTime"]), End: parseTime(r["EndTime"]), Nodes: emptyIfNone(r["Nodes"]),
		Partition: emptyIfNone(r["PartitionName"]), Users: site.Words(r["Users"]), Accounts: site.Words(r["Accounts"]), Groups: site.Words(r["Groups"]),
		Flags: site.Words(r["Flags"]), Licenses: emptyIfNone(r["Licenses"]),
	}
}

func parseLicense(r record) fleet.License {
	return fleet.License{Name: r["LicenseName"], Total: int64(parseCount(r["Total"])), Used: int64(parseCount(r["Used"])), Reserved: int64(parseCount(r["Reserved"]))}
}

// enforcedRules are the rules of AccountingStorageEnforce; "none" where there are none, so that
// none are told from those that are not known.
func enforcedRules(config []byte) []string {
	if w := site.Words(configValue(config, "AccountingStorageEnforce")); len(w) > 0 {
		return w
	}
	return []string{"none"}
}

// configValue is a value of scontrol show config's.
func configValue(config []byte, name string) string {
	for line := range strings.Lines(string(config)) {
		if key, value, _ := strings.Cut(line, "="); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// listAccounting asks sacctmgr for fields of all of a kind.
func (s *Site) listAccounting(ctx context.Context, kind string, fields ...string) (out []record, err error) {
	text, err := s.runQuery(ctx, "sacctmgr", "--readonly", "--noheader", "--parsable", "show", kind, "format="+strings.Join(fields, ","))
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

func (s *Site) listQOS(ctx context.Context) (out []fleet.QOS, err error) {
	all, err := s.listAccounting(ctx, "qos", "Name", "Priority", "Flags", "MaxWall", "MaxTRES", "MaxTRESPU", "MaxTRESPA", "MaxJobsPU", "MaxSubmitPU", "GrpTRES")
	for _, r := range all {
		out = append(out, fleet.QOS{
			Name: r["Name"], Priority: int64(parseCount(r["Priority"])), Flags: site.Words(r["Flags"]), MaxTime: site.Seconds(r["MaxWall"]), MaxPerJob: r["MaxTRES"],
			MaxPerUser: r["MaxTRESPU"], MaxPerAccount: r["MaxTRESPA"], MaxJobsPerUser: parseCount(r["MaxJobsPU"]), MaxSubmitPerUser: parseCount(r["MaxSubmitPU"]), Group: r["GrpTRES"],
		})
	}
	return out, err
}

func (s *Site) listAssociations(ctx context.Context, cluster string) (out []fleet.Association, err error) {
	users, err := s.listAccounting(ctx, "user", "User", "DefaultAccount")
	if err != nil {
		return nil, err
	}
	usual := map[string]string{}
	for _, r := range users {
		usual[r["User"]] = r["DefaultAccount"]
	}
	all, err := s.listAccounting(ctx, "assoc", "Cluster", "Account", "ParentName", "User", "Partition", "QOS", "Share", "MaxWall", "MaxTRES", "MaxJobs", "MaxSubmit", "GrpTRES")
	for _, r := range all {
		if !strings.EqualFold(r["Cluster"], cluster) { // one database serves many
			continue
		}
		out = append(out, fleet.Association{
			Account: r["Account"], Parent: r["ParentName"], User: r["User"], Partition: r["Partition"], Default: r["User"] != "" && usual[r["User"]] == r["Account"],
			QOS: site.Words(r["QOS"]), Shares: parseCount(r["Share"]), MaxTime: site.Seconds(r["MaxWall"]), MaxPerJob: r["MaxTRES"],
			MaxJobs: parseCount(r["MaxJobs"]), MaxSubmit: parseCount(r["MaxSubmit"]), Group: r["GrpTRES"],
		})
	}
	return out, err
}

// everyone are the fields asked of squeue of everybody's jobs; the comment is last.
var everyone = []string{"UserName", "Partition", "State", "NumNodes", "NumCPUs", "NodeList", "tres-alloc", "tres-per-node", "tres-per-job", "Comment"}

// Everyone is site.Site's.
func (s *Site) Everyone(ctx context.Context) (out []site.Held, err error) {
	text, err := s.runQuery(ctx, "squeue", "--noheader", "--all", "--states=PENDING,RUNNING,SUSPENDED,CONFIGURING,COMPLETING", "--Format="+squeueFormat(everyone))
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
		h := site.Held{User: f["UserName"], Partition: f["Partition"], Comment: emptyIfNone(f["Comment"]), Running: w.State != site.Pending, CPUs: parseCount(f["NumCPUs"])}
		h.GPUs = site.GPUs(f["tres-alloc"], f["tres-per-node"], f["tres-per-job"], parseCount(f["NumNodes"]))
		if h.Nodes, err = expandHosts(f["NodeList"]); err != nil {
			return nil, fault.New(fault.Unavailable, "the nodes of a job, as squeue has them: %w", err)
		}
		out = append(out, h)
	}
	return out, nil
}
