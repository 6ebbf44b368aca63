package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sim/sim"
	"github.com/coxswain-sched/coxswain/sim/study"
	"github.com/coxswain-sched/coxswain/sim/trace"
)

// baseRules are the rules that each row of ruleRows changes.
const baseRules = `
accounts:
  - {name: a, default_qos: low, users: [{name: u1, default: true}, {name: u2}]}
  - {name: b, default_qos: high, users: [{name: u3, default: true}, {name: u4}]}
qos: [{name: low}, {name: high}]
partitions: [{name: batch}, {name: fast}]
flavors: [{name: all}, {name: ib, features: [ib]}]
licenses: [{name: matlab, count: 3}]
`

// Where the decision is that a rule changes.
const (
	inCore   = "core"      // of the core, live and in cox simulate
	liveOnly = "live"      // of the core; a trace names no partition, licence, reservation, priority or array
	atDoor   = "admission" // whether a job is taken, and as what
	text     = "text"      // none: people read it
	named    = "name"      // by itself it only names what other rules speak of
)

// ruleRow shows a decision that a rule changes: the change is made after the setup.
type ruleRow struct {
	where         string
	setup, change func(p *account.Policy)
	see           string // the test that shows it, instead: "PACKAGE TEST"
}

func limitOf(p *account.Policy) *account.Limits { return &p.QOS[0].Limits }

func of[T any](v T) *T { return &v }

func minutes(n int) *account.Duration { return of(account.Duration(time.Duration(n) * time.Minute)) }

// quotas gives both accounts a quota of processors in one cohort.
func quotas(p *account.Policy) {
	q := func(cpus int) *account.Quota {
		return &account.Quota{Flavors: []account.FlavorQuota{{Flavor: "all", Resources: []account.ResourceQuota{{Name: "cpu", Nominal: resource.CPUs(cpus)}}}}}
	}
	p.Accounts = append([]account.Account{{Name: "org", Quota: &account.Quota{}}}, p.Accounts...)
	p.Accounts[1].Parent, p.Accounts[2].Parent = "org", "org"
	p.Accounts[1].Quota, p.Accounts[2].Quota = q(8), q(24)
}

func preempts(p *account.Policy) {
	p.Preemption.By, p.QOS[1].Preempts = []string{"qos"}, []string{"low"}
}

func fairShares(p *account.Policy) { p.Priority.FairShare = 1000 }

func reserved(p *account.Policy) {
	p.Reservations = []account.Reservation{{Name: "r", Nodes: []string{"n1"}, Start: "1970-01-01T00:05:00Z", Duration: account.Duration(time.Hour), Users: []string{"u1"}}}
}

func also(fs ...func(p *account.Policy)) func(p *account.Policy) {
	return func(p *account.Policy) {
		for _, f := range fs {
			f(p)
		}
	}
}

// ruleRows has a row for each rule of queues.yaml. Limits have one below qos.limits, for
// those of accounts and users are the same type.
var ruleRows = map[string]ruleRow{
	"priority.age":             {where: inCore, setup: func(p *account.Policy) { p.Priority.JobSize = 10 }, change: func(p *account.Policy) { p.Priority.Age = 1 << 30; p.Priority.MaxAge = account.Duration(time.Hour) }},
	"priority.association":     {where: inCore, setup: func(p *account.Policy) { p.Accounts[1].Priority = 10 }, change: func(p *account.Policy) { p.Priority.Association = 1000 }},
	"priority.fair_share":      {where: inCore, change: fairShares},
	"priority.job_size":        {where: inCore, change: func(p *account.Policy) { p.Priority.JobSize = 1000 }},
	"priority.partition":       {where: liveOnly, setup: func(p *account.Policy) { p.Partitions[1].Priority = 10 }, change: func(p *account.Policy) { p.Priority.Partition = 1000 }},
	"priority.qos":             {where: inCore, setup: func(p *account.Policy) { p.QOS[1].Priority = 10 }, change: func(p *account.Policy) { p.Priority.QOS = 1000 }},
	"priority.tres":            {where: inCore, change: func(p *account.Policy) { p.Priority.TRES = map[string]uint32{"cpu": 1000} }},
	"prices.currency":          {see: "model/report TestCost"},
	"prices.rates.name":        {where: text},
	"prices.rates.pool":        {see: "model/report TestCost"},
	"prices.rates.gpu":         {see: "model/report TestCost"},
	"prices.rates.gpu_hour":    {see: "model/report TestCost"},
	"prices.rates.cpu_hour":    {see: "model/report TestCost"},
	"prices.rates.memory_hour": {see: "model/report TestCost"},
	"budgets.name":             {where: text},
	"budgets.account":          {see: "model/report TestBudgets"},
	"budgets.amount":           {see: "model/report TestBudgets"},
	"budgets.period":           {see: "model/report TestBudgets"},
	"budgets.warn":             {see: "model/report TestBudgets"},

	"accounts.routes":         {see: "service/controller TestHostsThatTheRulesGrant"},
	"batch.requeue":           {see: "control/admission TestFillBatch"},
	"batch.open_mode":         {see: "control/admission TestFillBatch"},
	"batch.propagate":         {see: "control/intake TestLimitsOfTheSubmitter"},
	"batch.requeue_exit":      {see: "control TestRequeueExit"},
	"batch.requeue_exit_hold": {see: "control TestRequeueExit"},

	"priority.max_age":     {where: inCore, setup: func(p *account.Policy) { p.Priority.Age, p.Priority.JobSize = 1000, 400 }, change: func(p *account.Policy) { p.Priority.MaxAge = *minutes(30) }},
	"priority.favor_small": {where: inCore, setup: func(p *account.Policy) { p.Priority.JobSize = 1000 }, change: func(p *account.Policy) { p.Priority.FavorSmall = true }},
	"priority.flags":       {where: inCore, setup: func(p *account.Policy) { p.Priority.JobSize = 1000 }, change: func(p *account.Policy) { p.Priority.Flags = []string{"small_relative_to_time"} }},

	"fair_share.half_life": {where: inCore, setup: also(fairShares, func(p *account.Policy) { p.FairShare.Period = account.Duration(time.Minute) }), change: func(p *account.Policy) { p.FairShare.HalfLife = account.Duration(time.Minute) }},
	"fair_share.period":    {where: inCore, setup: also(fairShares, func(p *account.Policy) { p.FairShare.HalfLife = account.Duration(time.Minute) }), change: func(p *account.Policy) { p.FairShare.Period = account.Duration(30 * time.Second) }},
	"fair_share.reset":     {see: "model/account/fair TestReset"},
	"fair_share.ties":      {see: "model/account/fair TestFormula"},

	"backfill.reservations": {where: inCore, change: func(p *account.Policy) { p.Backfill.Reservations = 3 }},
	"backfill.depth":        {where: inCore, change: func(p *account.Policy) { p.Backfill.Depth = 1 }},
	"backfill.off":          {where: inCore, change: func(p *account.Policy) { p.Backfill.Off = true }},

	"preemption.by":          {where: inCore, setup: func(p *account.Policy) { p.QOS[1].Preempts = []string{"low"} }, change: preempts},
	"preemption.mode":        {where: inCore, setup: preempts, change: func(p *account.Policy) { p.Preemption.Mode = "cancel" }},
	"preemption.exempt":      {where: inCore, setup: preempts, change: func(p *account.Policy) { p.Preemption.Exempt = account.Duration(time.Hour) }},
	"preemption.grace":       {where: inCore, setup: preempts, change: func(p *account.Policy) { p.Preemption.Grace = *minutes(2) }},
	"preemption.max_grace":   {see: "test/preempt TestGraceEnds"},
	"preemption.signal":      {see: "test/preempt TestCheckpointContract"},
	"preemption.defrag":      {see: "sched TestLateMoves"},
	"preemption.defrag_rest": {see: "sched TestRestAfterAMove"},

	"accounts.name": {where: named},
	"accounts.parent": {where: inCore, setup: also(fairShares, func(p *account.Policy) {
		p.Accounts[1].Shares = 5
		p.Accounts = append(p.Accounts, account.Account{Name: "c", Shares: 50})
	}), change: func(p *account.Policy) { p.Accounts[0].Parent = "c" }},
	"accounts.note":        {where: text},
	"accounts.shares":      {where: inCore, setup: fairShares, change: func(p *account.Policy) { p.Accounts[1].Shares = 50 }},
	"accounts.priority":    {where: inCore, setup: func(p *account.Policy) { p.Priority.Association = 1000 }, change: func(p *account.Policy) { p.Accounts[1].Priority = 10 }},
	"accounts.qos":         {where: atDoor, change: func(p *account.Policy) { p.Accounts[0].QOS = []string{"low"} }},
	"accounts.default_qos": {where: inCore, setup: preempts, change: func(p *account.Policy) { p.Accounts[1].Default = "low" }},

	"accounts.quota.flavors.flavor": {where: inCore, setup: quotas, change: func(p *account.Policy) {
		p.Accounts[1].Quota.Flavors[0].Flavor, p.Accounts[2].Quota.Flavors[0].Flavor = "ib", "ib"
	}},
	"accounts.quota.flavors.resources.name": {where: inCore, setup: quotas, change: func(p *account.Policy) {
		r := &p.Accounts[1].Quota.Flavors[0].Resources[0]
		*r = account.ResourceQuota{Name: "job", Nominal: 1, Borrow: of(resource.Amount(0))}
	}},
	"accounts.quota.flavors.resources.nominal": {where: inCore, setup: quotas, change: func(p *account.Policy) { p.Accounts[2].Quota.Flavors[0].Resources[0].Nominal = resource.CPUs(8) }},
	"accounts.quota.flavors.resources.borrow":  {where: inCore, setup: quotas, change: func(p *account.Policy) { p.Accounts[1].Quota.Flavors[0].Resources[0].Borrow = of(resource.Amount(0)) }},
	"accounts.quota.flavors.resources.lend":    {where: inCore, setup: quotas, change: func(p *account.Policy) { p.Accounts[2].Quota.Flavors[0].Resources[0].Lend = of(resource.Amount(0)) }},
	"accounts.quota.order":                     {where: inCore, setup: quotas, change: func(p *account.Policy) { p.Accounts[0].Quota.Order = account.Strict }},
	"accounts.quota.weight":                    {see: "sched/schedtest TestScenarios"},
	"accounts.quota.fair":                      {where: inCore, setup: quotas, change: func(p *account.Policy) { p.Accounts[0].Quota.Fair = true }},
	"accounts.quota.strategies":                {see: "sched/schedtest TestScenarios"},
	"accounts.quota.when_borrow":               {see: "sched/schedtest TestScenarios"},
	"accounts.quota.when_preempt":              {see: "sched/schedtest TestScenarios"},
	"accounts.quota.when_full":                 {see: "sched/schedtest TestScenarios"},
	"accounts.quota.prefer":                    {see: "sched/schedtest TestScenarios"},
	"accounts.quota.within":                    {see: "sched/schedtest TestScenarios"},
	"accounts.quota.reclaim":                   {where: inCore, setup: also(quotas, func(p *account.Policy) { p.Preemption.By = []string{"quota"} }), change: func(p *account.Policy) { p.Accounts[2].Quota.Reclaim = account.AnyVictims }},
	"accounts.quota.borrowing":                 {see: "sched/schedtest TestScenarios"},
	"accounts.quota.max_priority":              {see: "sched/schedtest TestScenarios"},

	"accounts.users.name":     {where: atDoor, change: func(p *account.Policy) { p.Accounts[0].Users[0].Name = "u9" }},
	"accounts.users.default":  {where: atDoor, setup: func(p *account.Policy) { p.Accounts[1].Users = append(p.Accounts[1].Users, account.User{Name: "u1"}) }, change: func(p *account.Policy) { p.Accounts[0].Users[0].Default, p.Accounts[1].Users[2].Default = false, true }},
	"accounts.users.shares":   {where: inCore, setup: also(fairShares, func(p *account.Policy) { p.FairShare.Period = *minutes(1) }), change: func(p *account.Policy) { p.Accounts[1].Users[1].Shares = 50 }},
	"accounts.users.priority": {where: inCore, setup: func(p *account.Policy) { p.Priority.Association = 1000 }, change: func(p *account.Policy) { p.Accounts[1].Users[1].Priority = 10 }},
	"accounts.users.qos":      {where: atDoor, change: func(p *account.Policy) { p.Accounts[0].Users[0].QOS = []string{"low"} }},

	"qos.name":            {where: named},
	"qos.note":            {where: text},
	"qos.priority":        {where: inCore, setup: func(p *account.Policy) { p.Priority.QOS = 1000 }, change: func(p *account.Policy) { p.QOS[1].Priority = 10 }},
	"qos.preempts":        {where: inCore, setup: func(p *account.Policy) { p.Preemption.By = []string{"qos"} }, change: preempts},
	"qos.preempt_mode":    {where: inCore, setup: preempts, change: func(p *account.Policy) { p.QOS[0].PreemptMode = "off" }},
	"qos.grace":           {where: inCore, setup: preempts, change: func(p *account.Policy) { p.QOS[0].Grace = *minutes(2) }},
	"qos.exempt":          {where: inCore, setup: preempts, change: func(p *account.Policy) { p.QOS[0].Exempt = account.Duration(time.Hour) }},
	"qos.usage_factor":    {where: inCore, setup: also(fairShares, func(p *account.Policy) { p.FairShare.Period = account.Duration(time.Minute) }), change: func(p *account.Policy) { p.QOS[1].UsageFactor = of(0.0) }},
	"qos.usage_threshold": {where: inCore, setup: also(fairShares, func(p *account.Policy) { p.FairShare.Period = account.Duration(time.Minute) }), change: func(p *account.Policy) { p.QOS[0].UsageThreshold = of(0.9) }},
	"qos.limit_factor":    {where: inCore, setup: func(p *account.Policy) { p.Accounts[0].Limits.Group = account.TRES{"cpu": resource.CPUs(8)} }, change: func(p *account.Policy) { p.QOS[0].LimitFactor = of(3.0) }},
	"qos.flags": {where: inCore, change: func(p *account.Policy) {
		p.QOS[0].Flags, p.QOS[1].Flags = []string{"no_reserve"}, []string{"no_reserve"}
	}},

	"qos.limits.group":             {where: inCore, change: func(p *account.Policy) { limitOf(p).Group = account.TRES{"cpu": resource.CPUs(8)} }},
	"qos.limits.group_minutes":     {where: inCore, change: func(p *account.Policy) { limitOf(p).GroupMinutes = account.TRES{"cpu": resource.CPUs(60)} }},
	"qos.limits.group_run_minutes": {where: inCore, change: func(p *account.Policy) { limitOf(p).GroupRunMinutes = account.TRES{"cpu": resource.CPUs(160)} }},
	"qos.limits.group_jobs":        {where: inCore, change: func(p *account.Policy) { limitOf(p).GroupJobs = of(int64(1)) }},
	"qos.limits.group_submitted":   {see: "control TestAnArrayIsAdmittedInPart"},
	"qos.limits.group_accruing":    {see: "sched TestOnlySoManyGrowOlder"},
	"qos.limits.group_wall":        {where: inCore, change: func(p *account.Policy) { limitOf(p).GroupWall = minutes(5) }},
	"qos.limits.job":               {where: inCore, change: func(p *account.Policy) { limitOf(p).Job = account.TRES{"cpu": resource.CPUs(4)} }},
	"qos.limits.node":              {where: inCore, change: func(p *account.Policy) { limitOf(p).Node = account.TRES{"cpu": resource.CPUs(4)} }},
	"qos.limits.job_minutes":       {where: inCore, change: func(p *account.Policy) { limitOf(p).JobMinutes = account.TRES{"cpu": resource.CPUs(20)} }},
	"qos.limits.jobs":              {where: inCore, setup: nil, change: func(p *account.Policy) { limitOf(p).Jobs = of(int64(1)); p.Accounts[0].Limits.Jobs = of(int64(1)) }},
	"qos.limits.submitted":         {see: "control TestAnArrayIsAdmittedInPart"},
	"qos.limits.accruing":          {see: "sched TestOnlySoManyGrowOlder"},
	"qos.limits.wall": {where: atDoor, change: func(p *account.Policy) {
		limitOf(p).Wall = minutes(1)
		limitOf(p)
		p.QOS[0].Flags = []string{"deny_on_limit"}
	}},
	"qos.limits.user":                {where: inCore, change: func(p *account.Policy) { limitOf(p).User = account.TRES{"cpu": resource.CPUs(8)} }},
	"qos.limits.account":             {where: inCore, change: func(p *account.Policy) { limitOf(p).Account = account.TRES{"cpu": resource.CPUs(8)} }},
	"qos.limits.user_run_minutes":    {where: inCore, change: func(p *account.Policy) { limitOf(p).UserRunMinutes = account.TRES{"cpu": resource.CPUs(160)} }},
	"qos.limits.account_run_minutes": {where: inCore, change: func(p *account.Policy) { limitOf(p).AcctRunMinutes = account.TRES{"cpu": resource.CPUs(160)} }},
	"qos.limits.user_jobs":           {where: inCore, change: func(p *account.Policy) { limitOf(p).UserJobs = of(int64(1)) }},
	"qos.limits.account_jobs":        {where: inCore, change: func(p *account.Policy) { limitOf(p).AcctJobs = of(int64(1)) }},
	"qos.limits.user_submitted":      {see: "control TestAnArrayIsAdmittedInPart"},
	"qos.limits.account_submitted":   {see: "control TestAnArrayIsAdmittedInPart"},
	"qos.limits.user_accruing":       {see: "sched TestOnlySoManyGrowOlder"},
	"qos.limits.account_accruing":    {see: "sched TestOnlySoManyGrowOlder"},
	"qos.limits.least":               {where: inCore, change: func(p *account.Policy) { limitOf(p).Least = account.TRES{"cpu": resource.CPUs(6)} }},
	"qos.limits.least_priority":      {where: inCore, setup: func(p *account.Policy) { p.Priority.JobSize = 1000 }, change: func(p *account.Policy) { limitOf(p).LeastPriority = of(uint32(400)) }},

	"partitions.name":     {where: named},
	"partitions.tier":     {where: liveOnly, change: func(p *account.Policy) { p.Partitions[1].Tier = 5 }},
	"partitions.priority": {where: liveOnly, setup: func(p *account.Policy) { p.Priority.Partition = 1000 }, change: func(p *account.Policy) { p.Partitions[1].Priority = 10 }},
	"partitions.qos": {where: liveOnly, setup: func(p *account.Policy) {
		p.QOS = append(p.QOS, account.QOS{Name: "part", Limits: account.Limits{GroupJobs: of(int64(1))}})
	}, change: func(p *account.Policy) { p.Partitions[0].QOS = "part" }},
	"partitions.preempt_mode":   {where: liveOnly, setup: preempts, change: func(p *account.Policy) { p.Partitions[0].PreemptMode = "off" }},
	"partitions.grace":          {see: "sched/schedtest TestScenarios"},
	"partitions.time_slice":     {see: "sched/schedtest TestScenarios"},
	"partitions.max_time":       {where: liveOnly, change: func(p *account.Policy) { p.Partitions[0].MaxTime = *minutes(2) }},
	"partitions.max_nodes":      {where: liveOnly, change: func(p *account.Policy) { p.Partitions[0].MaxNodes = 1 }},
	"partitions.min_nodes":      {where: liveOnly, change: func(p *account.Policy) { p.Partitions[0].MinNodes = 2 }},
	"partitions.allow_accounts": {where: atDoor, change: func(p *account.Policy) { p.Partitions[0].AllowAccts = []string{"b"} }},
	"partitions.deny_accounts":  {where: atDoor, change: func(p *account.Policy) { p.Partitions[0].DenyAccts = []string{"a"} }},
	"partitions.allow_qos":      {where: atDoor, change: func(p *account.Policy) { p.Partitions[0].AllowQOS = []string{"high"} }},
	"partitions.deny_qos":       {where: atDoor, change: func(p *account.Policy) { p.Partitions[0].DenyQOS = []string{"low"} }},
	"pools.name":                {where: named},
	"pools.billing":             {see: "sched TestBillingByPool"},
	"pools.billing_rule":        {see: "sched TestBillingByPool"},
	"partitions.billing":        {see: "model/account/priority TestBilling"},
	"partitions.billing_rule":   {see: "model/account/priority TestBilling"},

	"flavors.name": {where: named},
	"flavors.features": {where: inCore, setup: also(quotas, func(p *account.Policy) {
		p.Accounts[1].Quota.Flavors[0].Flavor, p.Accounts[2].Quota.Flavors[0].Flavor = "ib", "ib"
	}), change: func(p *account.Policy) { p.Flavors[1].Features = nil }},
	"flavors.gpu_type": {where: inCore, setup: quotas, change: func(p *account.Policy) { p.Flavors[0].GPUType = "h100" }},

	"compat":               {where: inCore, change: func(p *account.Policy) { p.Compat = "slurm" }},
	"placement":            {see: "sched TestPlacementIsLearnedFromTheFirstPartOn"},
	"topology.switch_wait": {where: liveOnly, change: func(p *account.Policy) { p.Topology.SwitchWait = -1 }},
	"licenses.name":        {where: named},
	"licenses.count":       {where: liveOnly, change: func(p *account.Policy) { p.Licenses[0].Count = 1 }},

	"handover.pools.name":     {where: named},
	"handover.pools.min":      {see: "service/handover/demand TestDecide"},
	"handover.pools.max":      {see: "service/handover/demand TestDecide"},
	"handover.pools.cost":     {see: "service/handover/demand TestDecide"},
	"handover.pools.weight":   {see: "service/handover/demand TestDecide"},
	"handover.pools.after":    {see: "service/handover/demand TestDecide"},
	"handover.pools.stay":     {see: "service/handover/demand TestRandomWorlds"},
	"handover.pools.drain":    {see: "service/handover/demand TestDecide"},
	"handover.pools.requeue":  {see: "service/handover/demand TestDecide"},
	"handover.pools.exchange": {see: "service/handover/demand TestDecide"},

	"reservations.name":        {where: named},
	"reservations.note":        {where: text},
	"reservations.nodes":       {where: liveOnly, setup: reserved, change: func(p *account.Policy) { p.Reservations[0].Nodes = nil }},
	"reservations.start":       {where: liveOnly, setup: reserved, change: func(p *account.Policy) { p.Reservations[0].Start = "1970-01-01T00:15:00Z" }},
	"reservations.duration":    {where: liveOnly, setup: reserved, change: func(p *account.Policy) { p.Reservations[0].Duration = account.Duration(5 * time.Minute) }},
	"reservations.every":       {see: "sched TestAGangIsPlannedAfterReservations"},
	"reservations.ahead":       {see: "sched TestAJobThatAReservationEnds"},
	"reservations.accounts":    {see: "sched TestAReservationKeepsItsNodes"},
	"reservations.users":       {see: "sched TestAReservationKeepsItsNodes"},
	"reservations.flex":        {see: "sched TestAJobThatAReservationEnds"},
	"reservations.ignore_jobs": {see: "server TestReservations"},
	"reservations.overlap":     {see: "policy TestReservationsLeaveTheRest"},
}

// workload is what both worlds run: jobs of four users on four nodes of 8 processors.
func workload() []trace.Job {
	var out []trace.Job
	x := uint32(1)
	draw := func(n int) int { x = x*1664525 + 1013904223; return int(x>>16) % n }
	for i := range 40 {
		user := 1 + draw(4)
		j := trace.Job{
			ID: int64(i + 1), Submit: time.Duration(i/3) * time.Minute, Run: time.Duration(1+draw(8)) * time.Minute,
			CPUs: []int{1, 2, 4, 8, 8, 16, 32}[draw(7)], User: fmt.Sprint("u", user), Group: []string{"a", "b"}[(user-1)/2], Waited: -1,
		}
		j.Limit = j.Run + time.Duration(draw(5))*time.Minute
		out = append(out, j)
	}
	return out
}

func workNodes() []fleet.Node {
	var out []fleet.Node
	for i := range 4 {
		n := fleet.Node{Name: fmt.Sprint("n", i+1), Path: []string{fmt.Sprint("leaf", i)}, State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8)}, Parts: []string{"batch", "fast"}}
		if i < 2 {
			n.Features = []string{"ib"}
		}
		out = append(out, n)
	}
	return out
}

// decideLive lists what the core decides of the workload, whose jobs also name partitions and
// licences.
func decideLive(p *account.Policy) string {
	var b strings.Builder
	s := sim.New(sched.Config{}, workNodes())
	s.Watch = func(now time.Duration, _ []sched.Event, decisions []sched.Decision) {
		for _, d := range decisions {
			switch d.(type) {
			case sched.Start, sched.Preempt:
				fmt.Fprintf(&b, "%v %+v\n", now, d)
			}
		}
	}
	s.At(0, sched.PolicySet{Policy: p})
	qos := map[string]string{}
	for _, a := range p.Accounts {
		qos[a.Name] = a.Default
	}
	for i, j := range workload() {
		g := job.TaskGroup{Tasks: job.Count{Want: j.CPUs}}
		g.PerTask.CPU = resource.OneCPU
		if j.CPUs > 8 {
			g.Nodes = job.Range{Min: j.CPUs / 8, Max: j.CPUs / 8}
		}
		spec := &job.Spec{Groups: []job.TaskGroup{g}, TimeLimit: j.Limit, Owner: job.Owner{User: j.User}, Account: j.Group, QOS: qos[j.Group], Partitions: []string{[]string{"batch", "fast"}[i%2]}, Requeue: true}
		if i%3 == 0 {
			spec.Licenses = "matlab:1"
		}
		if j.CPUs == 16 {
			spec.Groups[0].Wishes.Switches = job.Wish{N: 1, For: job.SiteWait}
		}
		s.Submit(sim.Job{ID: job.ID(i + 1), Spec: spec, Submit: j.Submit, Work: j.Run})
	}
	s.Run()
	return b.String()
}

// decideSimulated is what cox simulate measures of the workload.
func decideSimulated(p *account.Policy) string {
	r := study.Study{Log: &trace.Log{Name: "w", Jobs: workload()}, Nodes: workNodes(), Policy: p, Limits: study.Recorded}.Run()
	r.Policy = ""
	return fmt.Sprintf("%+v", *r)
}

// decideDoor is what becomes of a job of u1 at the door.
func decideDoor(p *account.Policy) string {
	var b strings.Builder
	for _, qos := range []string{"", "high"} {
		spec := &job.Spec{Owner: job.Owner{User: "u1"}, QOS: qos, Partitions: []string{"batch"}, TimeLimit: 10 * time.Minute, Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}}}
		err := (&admission.Rules{}).Under(p).Apply(spec)
		fmt.Fprintf(&b, "%s %s %v\n", spec.Account, spec.QOS, err)
	}
	return b.String()
}

// TestEveryRuleDecides: each rule of queues.yaml changes a decision, live and in cox simulate
// where a trace can meet it. A rule that is new needs a row in ruleRows.
func TestEveryRuleDecides(t *testing.T) {
	paths := map[string]bool{}
	rulePaths(reflect.TypeFor[account.Policy](), "", map[reflect.Type]bool{}, paths)
	for path := range ruleRows {
		if !paths[path] {
			t.Errorf("%s is no rule", path)
		}
	}
	known := map[string]string{} // decisions by the rules, since many rows begin with the same
	decision := func(where string, decide func(*account.Policy) string, p *account.Policy) string {
		key, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := known[where+string(key)]; !ok {
			known[where+string(key)] = decide(p)
		}
		return known[where+string(key)]
	}
	for path := range paths {
		row, ok := ruleRows[path]
		switch {
		case !ok:
			t.Errorf("%s is a rule, and no row shows a decision that it changes", path)
			continue
		case row.see != "":
			if dir, name, _ := strings.Cut(row.see, " "); !testExists(t, dir, name) {
				t.Errorf("%s: there is no %s", path, row.see)
			}
			continue
		case row.change == nil:
			continue
		}
		before, after := rules(t, row.setup), rules(t, row.setup, row.change)
		differ := func(where string, decide func(*account.Policy) string) bool {
			return decision(where, decide, before) != decision(where, decide, after)
		}
		switch row.where {
		case inCore:
			if !differ("live", decideLive) {
				t.Errorf("%s changes no decision of the core", path)
			}
			if !differ("simulated", decideSimulated) {
				t.Errorf("%s changes nothing in cox simulate", path)
			}
		case liveOnly:
			if !differ("live", decideLive) {
				t.Errorf("%s changes no decision of the core", path)
			}
		case atDoor:
			if !differ("door", decideDoor) {
				t.Errorf("%s changes nothing at the door", path)
			}
		}
	}
}

// rules are the base rules, changed. What they would be in a file is checked.
func rules(t *testing.T, changes ...func(*account.Policy)) *account.Policy {
	t.Helper()
	p, err := policy.Parse("queues.yaml", []byte(baseRules))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c != nil {
			c(p)
		}
	}
	for _, x := range p.Check() {
		t.Errorf("%s: %s", x.Path, x.Message)
	}
	return p
}

// rulePaths collects the fields of a type, and of the types of its fields, each type once.
func rulePaths(of reflect.Type, path string, seen map[reflect.Type]bool, out map[string]bool) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		out[path] = true
		return
	}
	if of == reflect.TypeFor[account.Limits]() {
		path = "qos.limits" // of accounts and users too
	}
	if seen[of] {
		return
	}
	seen[of] = true
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("yaml"), ",")
		if name != "" && name != "-" {
			rulePaths(of.Field(i).Type, strings.TrimPrefix(path+"."+name, "."), seen, out)
		}
	}
}

// testExists reports whether a folder of the repository has a test of that name.
func testExists(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../../..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+name+"(") {
			return true
		}
	}
	return false
}
