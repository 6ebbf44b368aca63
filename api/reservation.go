package api

import "time"

// Reservations is the reservations in advance.
type Reservations struct {
	Revision     uint64        `json:"revision" doc:"of the site's rules, in which they stand"`
	Reservations []Reservation `json:"reservations"`
}

// Reservation keeps nodes for some accounts and users, or for nobody, for a time.
type Reservation struct {
	Name     string   `json:"name" doc:"as in sbatch --reservation; left out when one is made: after its first user or account"`
	Note     string   `json:"note,omitempty" doc:"for people"`
	Nodes    []string `json:"nodes,omitempty" doc:"by name; empty: all"`
	Start    string   `json:"start,omitempty" doc:"when it begins, as 2026-12-01T08:00:00Z"`
	Duration float64  `json:"duration" doc:"seconds"`
	Every    string   `json:"every,omitempty" doc:"it comes again each hour, day, weekday, weekend (day) or week"`
	Ahead    float64  `json:"ahead,omitempty" doc:"seconds; instead of start: it always begins so long from now"`
	Accounts []string `json:"accounts,omitempty" doc:"whose jobs may use it"`
	Users    []string `json:"users,omitempty" doc:"who may use it; without accounts and users: nobody (maintenance)"`
	Flex     bool     `json:"flex,omitempty" doc:"its jobs may begin before it, end after it, and use other nodes as well"`
	Overlap  bool     `json:"overlap,omitempty" doc:"it may stand on nodes that another one has at the same time"`
	Ignore   bool     `json:"ignore_jobs,omitempty" doc:"it may be made although jobs run on its nodes beyond its beginning"`

	From   *time.Time `json:"from,omitempty" doc:"of answers: when it holds, or holds next"`
	Until  *time.Time `json:"until,omitempty"`
	Active bool       `json:"active,omitempty" doc:"of answers: it holds now"`
	CPUs   int64      `json:"cpus,omitempty" doc:"of answers: of its nodes"`
	Count  int        `json:"count,omitempty" doc:"so many nodes: when one is made, they are chosen among those that are free for its first occurrence; of answers, how many it has"`

	Partition string   `json:"partition,omitempty" doc:"nodes of it alone are chosen"`
	Features  []string `json:"features,omitempty" doc:"that chosen nodes have"`
}

// SetReservation makes or changes a reservation.
type SetReservation struct {
	Reservation
	Base   *uint64 `json:"base,omitempty" doc:"revision of the rules on which the change was made; another one in force is a conflict"`
	DryRun bool    `json:"dry_run,omitempty" doc:"say what it would do, and do nothing"`
}

// ReservationDone says what was made.
type ReservationDone struct {
	Reservation Reservation `json:"reservation"`
	Revision    uint64      `json:"revision" doc:"of the site's rules"`
	Late        []Belated   `json:"late,omitempty" doc:"jobs that were promised a start on its nodes, which they may get later now"`
	Warnings    []string    `json:"warnings,omitempty"`
}

// Belated is a waiting job whose promised start is not kept.
type Belated struct {
	Job   string     `json:"job"`
	User  string     `json:"user,omitempty"`
	Start *time.Time `json:"start,omitempty" doc:"that it was promised; left out: nodes, without an instant"`
}
