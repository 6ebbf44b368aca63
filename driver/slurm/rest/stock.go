package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// partitionRecord is a partition: v0.0.38 has other names than later ones, and no parts.
type partitionRecord struct {
	Name      text   `json:"name"`
	OldState  text   `json:"state"`
	Flags     words  `json:"flags"`
	OldTime   number `json:"max_time_limit"`
	OldUsual  number `json:"default_time_limit"`
	OldMost   number `json:"maximum_nodes_per_job"`
	OldLeast  number `json:"min nodes per job"`
	OldAllow  words  `json:"allowed_accounts"`
	OldDeny   words  `json:"denied_accounts"`
	OldAllowQ words  `json:"allowed_qos"`
	OldDenyQ  words  `json:"denied_qos"`
	OldGroups words  `json:"allowed_groups"`
	OldTier   number `json:"priority_tier"`

	Nodes    nodesOf  `json:"nodes"` // a host list in v0.0.38
	QOS      qosOf    `json:"qos"`   // a name in v0.0.38
	Accounts allowing `json:"accounts"`
	Groups   allowing `json:"groups"`
	Maximums struct {
		Nodes number `json:"nodes"`
		Time  number `json:"time"`
	} `json:"maximums"`
	Minimums struct {
		Nodes number `json:"nodes"`
	} `json:"minimums"`
	Defaults struct {
		Time number `json:"time"`
	} `json:"defaults"`
	Priority struct {
		Tier number `json:"tier"`
	} `json:"priority"`
	Partition struct {
		State words `json:"state"`
	} `json:"partition"`
}

type allowing struct {
	Allowed words `json:"allowed"`
	Deny    words `json:"deny"`
}

// nodesOf is a host list, or an object with one.
type nodesOf struct{ list text }

// UnmarshalJSON is json.Unmarshaler's. It never fails.
func (n *nodesOf) UnmarshalJSON(b []byte) error {
	var o struct {
		Configured text `json:"configured"`
	}
	if b[0] == '{' && json.Unmarshal(b, &o) == nil {
		n.list = o.Configured
		return nil
	}
	return n.list.UnmarshalJSON(b)
}

// qosOf is the name of a QOS, or an object with that and with those that are allowed.
type qosOf struct {
	name text
	allowing
}

// UnmarshalJSON is json.Unmarshaler's. It never fails.
func (q *qosOf) UnmarshalJSON(b []byte) error {
	var o struct {
		Assigned text `json:"assigned"`
		allowing
	}
	if b[0] == '{' && json.Unmarshal(b, &o) == nil {
		q.name, q.allowing = o.Assigned, o.allowing
		return nil
	}
	return q.name.UnmarshalJSON(b)
}

// firstCount is the first that is set, as a count; what is below 0 is no limit.
func firstCount(all ...number) int64 {
	for _, n := range all {
		if v := n.integerBelow(noValue); n.set && v > 0 {
			return v
		}
	}
	return 0
}

// firstWords is the first that has words, without Slurm's words for none and for all.
func firstWords(all ...words) []string {
	for _, w := range all {
		if out := site.Words(strings.Join(w, ",")); len(out) > 0 {
			return out
		}
	}
	return nil
}

func (q *partitionRecord) fleetPartition() fleet.Partition {
	state := string(q.OldState)
	if state == "" {
		state = strings.Join(q.Partition.State, "+")
	}
	isDefault := slices.ContainsFunc(q.Flags, func(w string) bool { return strings.EqualFold(w, "default") })
	return fleet.Partition{
		Name: string(q.Name), Default: isDefault, State: strings.ToUpper(state), Nodes: string(q.Nodes.list),
		MaxTime: 60 * firstCount(q.OldTime, q.Maximums.Time), DefaultTime: 60 * firstCount(q.OldUsual, q.Defaults.Time),
		MinNodes: int(firstCount(q.OldLeast, q.Minimums.Nodes)), MaxNodes: int(firstCount(q.OldMost, q.Maximums.Nodes)),
		Accounts: firstWords(q.OldAllow, q.Accounts.Allowed), DenyAccounts: firstWords(q.OldDeny, q.Accounts.Deny),
		AllowQOS: firstWords(q.OldAllowQ, q.QOS.Allowed), DenyQOS: firstWords(q.OldDenyQ, q.QOS.Deny),
		Groups: firstWords(q.OldGroups, q.Groups.Allowed), QOS: string(q.QOS.name), Priority: int(firstCount(q.OldTier, q.Priority.Tier)),
	}
}

// amounts are a list of TRES.
type amounts []struct {
	Type  text   `json:"type"`
	Name  text   `json:"name"`
	Count number `json:"count"`
}

// String has Slurm's form: "cpu=8,gres/gpu=2".
func (a amounts) String() string {
	var out []string
	for _, t := range a {
		name := string(t.Type)
		if t.Name != "" {
			name += "/" + string(t.Name)
		}
		out = append(out, name+"="+strconv.FormatInt(t.Count.integerBelow(1<<62), 10))
	}
	return strings.Join(out, ",")
}

// qosRecord is a QOS.
type qosRecord struct {
	Name     text   `json:"name"`
	Flags    words  `json:"flags"`
	Priority number `json:"priority"`
	Limits   struct {
		Max struct {
			TRES struct {
				Total amounts `json:"total"`
				Per   struct {
					Account amounts `json:"account"`
					Job     amounts `json:"job"`
					User    amounts `json:"user"`
				} `json:"per"`
			} `json:"tres"`
			Wall struct {
				Per struct {
					Job number `json:"job"`
				} `json:"per"`
			} `json:"wall_clock"`
			Jobs struct {
				Active struct {
					Per struct {
						User number `json:"user"`
					} `json:"per"`
				} `json:"active_jobs"`
				Per struct {
					User number `json:"user"`
				} `json:"per"`
			} `json:"jobs"`
		} `json:"max"`
	} `json:"limits"`
}

func (r *qosRecord) fleetQOS() fleet.QOS {
	m := &r.Limits.Max
	q := fleet.QOS{
		Name: string(r.Name), Priority: firstCount(r.Priority), MaxTime: 60 * firstCount(m.Wall.Per.Job), MaxPerJob: m.TRES.Per.Job.String(), MaxPerUser: m.TRES.Per.User.String(),
		MaxPerAccount: m.TRES.Per.Account.String(), MaxJobsPerUser: int(firstCount(m.Jobs.Active.Per.User)), MaxSubmitPerUser: int(firstCount(m.Jobs.Per.User)), Group: m.TRES.Total.String(),
	}
	for _, f := range r.Flags { // sacctmgr's form of PARTITION_TIME_LIMIT
		var b strings.Builder
		for part := range strings.SplitSeq(strings.ToLower(f), "_") {
			if part != "" {
				b.WriteString(strings.ToUpper(part[:1]) + part[1:])
			}
		}
		q.Flags = append(q.Flags, b.String())
	}
	return q
}

// associationRecord is an association.
type associationRecord struct {
	Account   text   `json:"account"`
	Cluster   text   `json:"cluster"`
	Parent    text   `json:"parent_account"`
	User      text   `json:"user"`
	Partition text   `json:"partition"`
	Default   truth  `json:"is_default"`
	QOS       words  `json:"qos"`
	Shares    number `json:"shares_raw"`
	Max       struct {
		Jobs struct {
			Per struct {
				Wall number `json:"wall_clock"`
			} `json:"per"`
			Active number `json:"active"`
			Total  number `json:"total"`
		} `json:"jobs"`
		TRES struct {
			Total amounts `json:"total"`
			Per   struct {
				Job amounts `json:"job"`
			} `json:"per"`
		} `json:"tres"`
	} `json:"max"`
}

// truth is true, or a number that is not 0.
type truth bool

// UnmarshalJSON is json.Unmarshaler's. It never fails.
func (f *truth) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `" `)
	*f = s == "true" || s == "1"
	return nil
}

func (s *associationRecord) fleetAssociation() fleet.Association {
	m := &s.Max
	a := fleet.Association{
		Account: string(s.Account), Parent: string(s.Parent), User: string(s.User), Partition: string(s.Partition), Default: bool(s.Default) && s.User != "",
		QOS: slices.Sorted(slices.Values(s.QOS)), Shares: int(firstCount(s.Shares)), MaxTime: 60 * firstCount(m.Jobs.Per.Wall), MaxPerJob: m.TRES.Per.Job.String(),
		MaxJobs: int(firstCount(m.Jobs.Active)), MaxSubmit: int(firstCount(m.Jobs.Total)), Group: m.TRES.Total.String(),
	}
	return a
}

// reservationRecord is a reservation.
type reservationRecord struct {
	Name      text   `json:"name"`
	Start     number `json:"start_time"`
	End       number `json:"end_time"`
	Nodes     text   `json:"node_list"`
	Partition text   `json:"partition"`
	Users     words  `json:"users"`
	Accounts  words  `json:"accounts"`
	Groups    words  `json:"groups"`
	Flags     words  `json:"flags"`
	Licenses  text   `json:"licenses"`
}

func (k *reservationRecord) fleetReservation(now time.Time) fleet.Reservation {
	r := fleet.Reservation{
		Name: string(k.Name), State: "INACTIVE", Start: k.Start.asTime(), End: k.End.asTime(), Nodes: string(k.Nodes), Partition: string(k.Partition),
		Users: firstWords(k.Users), Accounts: firstWords(k.Accounts), Groups: firstWords(k.Groups), Flags: firstWords(k.Flags), Licenses: string(k.Licenses),
	}
	if !now.Before(r.Start) && now.Before(r.End) {
		r.State = "ACTIVE"
	}
	return r
}

// Stock is site.Site's. What slurmrestd does not tell (which rules are enforced; from
// v0.0.40 on, which partition is the default) the commands tell, if there are any.
func (s *Site) Stock(ctx context.Context) (*fleet.Inventory, error) {
	if s.cfg.Commands != nil {
		return s.cfg.Commands.Stock(ctx)
	}
	inv := &fleet.Inventory{Taken: time.Now(), Unknown: []string{"enforced rules: slurmrestd does not tell AccountingStorageEnforce"}}
	var parts struct {
		response
		Partitions []partitionRecord `json:"partitions"`
	}
	if err := s.callAPI(ctx, &request{method: http.MethodGet, base: "slurm", path: "/partitions"}, &parts); err != nil {
		return nil, err
	}
	for i := range parts.Partitions {
		inv.Partitions = append(inv.Partitions, parts.Partitions[i].fleetPartition())
	}
	ask := func(what, base, path string, into answer) bool {
		err := s.callAPI(ctx, &request{method: http.MethodGet, base: base, path: path}, into)
		if err != nil && fault.KindOf(err) != fault.NotFound {
			inv.Unknown = append(inv.Unknown, what+": "+err.Error())
		}
		return err == nil
	}
	var res struct {
		response
		All []reservationRecord `json:"reservations"`
	}
	if ask("reservations", "slurm", "/reservations", &res) {
		for i := range res.All {
			inv.Reservations = append(inv.Reservations, res.All[i].fleetReservation(inv.Taken))
		}
	}
	var lic struct {
		response
		All []struct {
			Name     text   `json:"LicenseName"`
			Total    number `json:"Total"`
			Used     number `json:"Used"`
			Reserved number `json:"Reserved"`
		} `json:"licenses"`
	}
	if ask("licenses", "slurm", "/licenses", &lic) {
		for _, l := range lic.All {
			inv.Licenses = append(inv.Licenses, fleet.License{Name: string(l.Name), Total: firstCount(l.Total), Used: firstCount(l.Used), Reserved: firstCount(l.Reserved)})
		}
	}
	var qos struct {
		response
		All []qosRecord `json:"qos"` // v0.0.38: "QOS", which the decoder takes too
	}
	if ask("qos", "slurmdb", "/qos", &qos) {
		for i := range qos.All {
			inv.QOS = append(inv.QOS, qos.All[i].fleetQOS())
		}
	}
	var assoc struct {
		response
		All []associationRecord `json:"associations"`
	}
	if ask("associations", "slurmdb", "/associations", &assoc) {
		for i := range assoc.All {
			if name := string(parts.Meta.Slurm.Cluster); name == "" || strings.EqualFold(name, string(assoc.All[i].Cluster)) {
				inv.Associations = append(inv.Associations, assoc.All[i].fleetAssociation())
			}
		}
	}
	return inv, ctx.Err()
}

// Everyone is site.Site's. slurmrestd has no shorter form: it sends each job whole.
func (s *Site) Everyone(ctx context.Context) ([]site.Held, error) {
	if s.cfg.Commands != nil {
		return s.cfg.Commands.Everyone(ctx)
	}
	var a struct {
		response
		Jobs []struct {
			User      text   `json:"user_name"`
			Partition text   `json:"partition"`
			Comment   text   `json:"comment"`
			State     words  `json:"job_state"`
			Nodes     text   `json:"nodes"`
			Count     number `json:"node_count"`
			CPUs      number `json:"cpus"`
			Held      text   `json:"tres_alloc_str"`
			Wanted    text   `json:"tres_req_str"`
			PerNode   text   `json:"tres_per_node"`
			PerJob    text   `json:"tres_per_job"`
		} `json:"jobs"`
	}
	if err := s.callAPI(ctx, &request{method: http.MethodGet, base: "slurm", path: "/jobs"}, &a); err != nil {
		return nil, err
	}
	var out []site.Held
	for i := range a.Jobs {
		j := &a.Jobs[i]
		var as site.Job
		if err := setState(&as, j.State); err != nil {
			return nil, err
		}
		if as.State.Final() && !as.Completing {
			continue
		}
		tres := string(j.Held)
		if tres == "" {
			tres = string(j.Wanted)
		}
		if err := setNodes(&as, string(j.Nodes)); err != nil {
			return nil, err
		}
		out = append(out, site.Held{
			User: string(j.User), Partition: string(j.Partition), Comment: string(j.Comment), Running: as.State != site.Pending, Nodes: as.Nodes,
			CPUs: int(firstCount(j.CPUs)), GPUs: site.GPUs(tres, string(j.PerNode), string(j.PerJob), int(firstCount(j.Count))),
		})
	}
	return out, nil
}
