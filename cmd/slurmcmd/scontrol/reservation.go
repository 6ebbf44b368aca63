package scontrol

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// reservation is one as it is read, changed and sent.
type reservation struct {
	name, note, start, every, partition string
	nodes, accounts, users, features    []string
	duration, ahead                     float64 // seconds
	count                               int
	flex, overlap, ignore               bool

	end   time.Time // EndTime, where it was said
	float bool      // TIME_FLOAT: start is how far ahead it is
}

func readReservation(v fastclient.Value) *reservation {
	return &reservation{
		name: v.Get("name").Text(), note: v.Get("note").Text(), start: v.Get("start").Text(), every: v.Get("every").Text(),
		nodes: v.Get("nodes").Texts(), accounts: v.Get("accounts").Texts(), users: v.Get("users").Texts(),
		duration: v.Get("duration").Float(), ahead: v.Get("ahead").Float(),
		flex: v.Get("flex").Bool(), overlap: v.Get("overlap").Bool(), ignore: v.Get("ignore_jobs").Bool(),
	}
}

// requestBody is api.SetReservation.
func (r *reservation) requestBody(base string) []byte {
	var o fastclient.Object
	for _, f := range []struct{ name, value string }{
		{"name", r.name}, {"note", r.note}, {"start", r.start}, {"every", r.every}, {"partition", r.partition},
	} {
		o.Text(f.name, f.value)
	}
	o.Texts("nodes", r.nodes)
	o.Texts("accounts", r.accounts)
	o.Texts("users", r.users)
	o.Texts("features", r.features)
	o.Float("duration", r.duration)
	if r.ahead > 0 {
		o.Float("ahead", r.ahead)
	}
	if r.count > 0 {
		o.Int("count", int64(r.count))
	}
	o.True("flex", r.flex)
	o.True("overlap", r.overlap)
	o.True("ignore_jobs", r.ignore)
	if base != "" {
		o.Raw("base", []byte(base))
	}
	return o.End()
}

// setKey takes KEY=VALUE over; KEY+= and KEY-= add to a list and take away.
func (r *reservation) setKey(key, value string, now time.Time) error {
	op := byte('=')
	if n := len(key); n > 0 && (key[n-1] == '+' || key[n-1] == '-') {
		op, key = key[n-1], key[:n-1]
	}
	low := strings.ToLower(key)
	is := func(word string, least int) bool { return len(low) >= least && strings.HasPrefix(word, low) }
	var err error
	switch {
	case is("reservationname", 1) && low != "r" && low != "re":
		r.name = value
	case is("starttime", 1):
		err = r.setStart(value, now)
	case is("endtime", 1):
		r.end, err = slurmfmt.ParseWhen(value, now)
	case is("duration", 1):
		err = r.setDuration(value, op)
	case is("nodes", 5), low == "nodelist":
		err = r.setNodes(value, op)
	case is("nodecnt", 5), is("nodecount", 5):
		r.count, err = strconv.Atoi(value)
		r.nodes = nil
	case is("users", 1):
		r.users = changeList(r.users, value, op)
	case is("accounts", 1):
		r.accounts = changeList(r.accounts, value, op)
	case is("partitionname", 1):
		r.partition = value
	case is("features", 2):
		r.features = strings.FieldsFunc(value, func(c rune) bool { return c == '&' || c == ',' })
	case is("comment", 2):
		r.note = value
	case is("flags", 2):
		return r.setFlags(value, op)
	case is("corecnt", 2), is("licenses", 1), is("burstbuffer", 1), is("tres", 1), is("groups", 1), is("maxstartdelay", 1), is("watts", 1), is("skip", 1):
		return fault.New(fault.Unsupported, "%s of a reservation is not built", key).Advise("docs/explanation/reservations.md says what there is: whole nodes, for accounts and users")
	default:
		return slurmcmd.Textf("Unknown parameter %s=%s.", key, value)
	}
	if err != nil {
		return slurmcmd.Textf("Invalid %s=%s: %v.", key, value, err)
	}
	return nil
}

func (r *reservation) setStart(value string, now time.Time) error {
	at, err := slurmfmt.ParseWhen(value, now)
	r.start = at.UTC().Format(time.RFC3339)
	if r.float || r.ahead > 0 {
		r.ahead, r.start = at.Sub(now).Seconds(), ""
	}
	return err
}

func (r *reservation) setDuration(value string, op byte) error {
	d, err := slurmfmt.ParseTimeLimit(strings.TrimLeft(value, "+-"))
	switch {
	case err != nil:
		return err
	case d <= 0:
		return fmt.Errorf("a reservation ends at some time")
	case op == '+':
		r.duration += d.Seconds()
	case op == '-':
		r.duration -= d.Seconds()
	default:
		r.duration = d.Seconds()
	}
	return nil
}

func (r *reservation) setNodes(value string, op byte) error {
	if strings.EqualFold(value, "ALL") {
		r.nodes = nil
		return nil
	}
	names, err := hostlist.Expand(value)
	r.nodes = changeList(r.nodes, strings.Join(names, ","), op)
	return err
}

// changeList sets a list, adds to it or takes away from it.
func changeList(list []string, value string, op byte) []string {
	names := slurmcmd.Split(value)
	switch op {
	case '+':
		return append(slices.Clone(list), names...)
	case '-':
		return slices.DeleteFunc(slices.Clone(list), func(n string) bool { return slices.Contains(names, n) })
	}
	return names
}

// words of Flags that repeat a reservation.
var repeating = map[string]string{"hourly": "hour", "daily": "day", "weekday": "weekday", "weekend": "weekend", "weekly": "week"}

func (r *reservation) setFlags(value string, op byte) error {
	for _, word := range slurmcmd.Split(value) {
		on := op != '-'
		if word != "" && (word[0] == '+' || word[0] == '-') {
			on, word = word[0] == '+', word[1:]
		}
		low := strings.ToLower(word)
		every, repeats := repeating[low]
		switch {
		case repeats && on:
			r.every = every
		case repeats:
			r.every = ""
		case low == "flex":
			r.flex = on
		case low == "overlap", low == "maint": // maintenance may stand where another reservation does
			r.overlap = on
		case low == "ignore_jobs":
			r.ignore = on
		case low == "time_float":
			r.setFloating(on)
		case low == "spec_nodes", low == "all_nodes", low == "static_alloc", low == "static", low == "":
		case slices.Contains([]string{"any_nodes", "daily", "first_cores", "license_only", "no_hold_jobs_after", "part_nodes", "purge_comp", "replace", "replace_down", "magnetic", "user_delete", "force_start", "reoccurring"}, low):
			return fault.New(fault.Unsupported, "the flag %s is not built", strings.ToUpper(low)).Advise("leave it out")
		default:
			return slurmcmd.Textf("Error parsing flags %s.", value)
		}
	}
	return nil
}

// setFloating makes the beginning a distance from now, or an instant again.
func (r *reservation) setFloating(on bool) {
	r.float = on
}

// settleKeys settles what depends on several keys.
func (r *reservation) settleKeys(now time.Time) error {
	if r.float && r.ahead == 0 {
		at, err := time.Parse(time.RFC3339, r.start)
		if err != nil || !at.After(now) {
			return slurmcmd.Textf("A floating reservation begins so long from now: StartTime=now+60minutes.")
		}
		r.ahead, r.start = at.Sub(now).Round(time.Second).Seconds(), ""
	}
	if !r.end.IsZero() {
		at := now.Add(time.Duration(r.ahead * float64(time.Second)))
		if t, err := time.Parse(time.RFC3339, r.start); err == nil {
			at = t
		}
		r.duration = r.end.Sub(at).Seconds()
	}
	return nil
}

// setAll takes all KEY=VALUE over.
func (r *reservation) setAll(args []string, now time.Time) error {
	for _, a := range args {
		key, value, ok := strings.Cut(a, "=")
		if !ok {
			return slurmcmd.Textf("Unknown parameter %s.", a)
		}
		if err := r.setKey(key, value, now); err != nil {
			return err
		}
	}
	return r.settleKeys(now)
}

// createReservation makes a reservation: create reservation KEY=VALUE…
func (s *command) createReservation(args []string) error {
	if len(args) == 0 {
		return plainErrorf("too few arguments for create keyword")
	}
	word, _, named := strings.Cut(strings.ToLower(args[0]), "=")
	switch {
	case len(word) >= 3 && strings.HasPrefix("reservationname", word) && named:
	case len(word) >= 3 && strings.HasPrefix("reservation", word):
		args = args[1:]
	case len(word) >= 3 && strings.HasPrefix("partitionname", word):
		return fault.New(fault.Unsupported, "create %s is not built", args[0]).Advise("partitions stand in the server's configuration: docs/reference/configuration.md")
	default:
		return slurmcmd.Textf("Invalid creation entity: %s", args[0])
	}
	r := &reservation{}
	err := r.setAll(args, s.Now)
	switch {
	case err != nil:
	case r.start == "" && r.ahead == 0:
		err = slurmcmd.Textf("A start time must be given.")
	case len(r.accounts)+len(r.users) == 0 && !isMaintenance(args):
		err = slurmcmd.Textf("Either Users/Groups and/or Accounts must be specified.")
	case r.duration <= 0:
		err = slurmcmd.Textf("A duration or an end time must be given.")
	}
	if err != nil {
		s.Fail(err)
		if fault.KindOf(err) != fault.Unsupported {
			s.Errorf("No reservation created.")
		}
		return nil
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	v, err := c.JSON("POST", "/v1/reservations", r.requestBody(""))
	if err != nil {
		fmt.Fprintln(s.Err, "Error creating the reservation:")
		return err
	}
	if !s.quiet {
		fmt.Fprintf(s.Out, "Reservation created: %s\n", v.Get("reservation").Get("name").Text())
	}
	s.warnDelayed(v)
	return nil
}

// isMaintenance reports whether a reservation is for nobody by intent.
func isMaintenance(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		key, value, _ := strings.Cut(strings.ToLower(a), "=")
		return strings.HasPrefix(key, "fl") && strings.Contains(value, "maint")
	})
}

// warnDelayed tells of waiting jobs that may start later than they were promised.
func (s *command) warnDelayed(v fastclient.Value) {
	for _, l := range v.Get("late").Items() {
		s.Sayf("job %s of %s may start later than it was promised", l.Get("job").Text(), l.Get("user").Text())
	}
}

// updateReservation changes what is said of a reservation.
func (s *command) updateReservation(name string, args []string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	v, err := c.JSON("GET", "/v1/reservations", nil)
	if err != nil {
		return err
	}
	for _, have := range v.Get("reservations").Items() {
		if have.Get("name").Text() != name {
			continue
		}
		r := readReservation(have)
		rest := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(strings.ToLower(a), "reservation") })
		if err := r.setAll(rest, s.Now); err != nil {
			return err
		}
		v, err := c.JSON("PUT", "/v1/reservations/"+fastclient.Segment(name), r.requestBody(strconv.FormatInt(v.Get("revision").Int(), 10)))
		if err != nil {
			fmt.Fprintln(s.Err, "Error updating the reservation:")
			return err
		}
		if !s.quiet {
			s.Out.WriteString("Reservation updated.\n")
		}
		s.warnDelayed(v)
		return nil
	}
	return plainErrorf("Error updating the reservation: Requested reservation is invalid\nslurm_update error: Requested reservation is invalid")
}

// deleteReservation ends a reservation: delete ReservationName=NAME.
func (s *command) deleteReservation(args []string) error {
	if len(args) == 0 {
		return plainErrorf("too few arguments for delete keyword")
	}
	word, name, _ := strings.Cut(args[0], "=")
	if len(args) > 1 && name == "" {
		name = args[1]
	}
	if low := strings.ToLower(word); len(low) < 3 || !strings.HasPrefix("reservationname", low) {
		return fault.New(fault.Unsupported, "delete %s is not built", args[0]).Advise("reservations alone are deleted here: scontrol delete ReservationName=NAME")
	}
	if name == "" {
		return plainErrorf("delete_reservation %s: Requested reservation is invalid", strings.Join(args, " "))
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	_, err = c.JSON("DELETE", "/v1/reservations/"+fastclient.Segment(name), nil)
	if slurmcmd.IsNotFound(err) {
		return plainErrorf("delete_reservation %s: Requested reservation is invalid", strings.Join(args, " "))
	}
	return err
}

// showReservations prints reservations in Slurm's form; name "": all.
func (s *command) showReservations(name string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	v, err := c.JSON("GET", "/v1/reservations", nil)
	if err != nil {
		return err
	}
	list := v.Get("reservations").Items()
	found := false
	for _, r := range list {
		if name == "" || r.Get("name").Text() == name {
			s.writeRecord(s.reservationLines(r))
			found = true
		}
	}
	switch {
	case len(list) == 0 && name == "":
		s.Out.WriteString("No reservations in the system\n")
	case !found:
		fmt.Fprintf(s.Out, "Reservation %s not found\n", name)
		s.Code = 1
	}
	return nil
}

// reservationLines describe a reservation, in Slurm's order.
func (s *command) reservationLines(v fastclient.Value) []string {
	r := readReservation(v)
	at := func(name string) string {
		if t := v.Get(name).Time(); !t.IsZero() {
			return t.Local().Format("2006-01-02T15:04:05")
		}
		return "Unknown" // it is over
	}
	nodes, state := "ALL", "INACTIVE"
	if len(r.nodes) > 0 {
		nodes = hostlist.Compress(r.nodes)
	}
	if v.Get("active").Bool() {
		state = "ACTIVE"
	}
	cpus := v.Get("cpus").Int()
	names := func(list []string) string { return cmp.Or(strings.Join(list, ","), "(null)") }
	lines := []string{
		fmt.Sprintf("ReservationName=%s StartTime=%s EndTime=%s Duration=%s", r.name, at("from"), at("until"), jobs.AppendLongSpan(nil, int64(r.duration))),
		fmt.Sprintf("Nodes=%s NodeCnt=%d CoreCnt=%d Features=(null) PartitionName=(null) Flags=%s", nodes, v.Get("count").Int(), cpus, r.flagWords()),
		fmt.Sprintf("TRES=cpu=%d", cpus),
		fmt.Sprintf("Users=%s Groups=(null) Accounts=%s Licenses=(null) State=%s BurstBuffer=(null) Watts=n/a", names(r.users), names(r.accounts), state),
		"MaxStartDelay=(null)",
	}
	if r.note != "" {
		lines = append(lines, "Comment="+r.note)
	}
	return lines
}

// flagWords are the flags in Slurm's order.
func (r *reservation) flagWords() string {
	var out []string
	add := func(is bool, word string) {
		if is {
			out = append(out, word)
		}
	}
	add(len(r.users)+len(r.accounts) == 0, "MAINT")
	add(r.flex, "FLEX")
	add(r.overlap && len(r.users)+len(r.accounts) > 0, "OVERLAP")
	add(r.ignore, "IGNORE_JOBS")
	for _, word := range []string{"hourly", "daily", "weekday", "weekend", "weekly"} {
		add(r.every == repeating[word], strings.ToUpper(word))
	}
	add(true, "SPEC_NODES")
	add(len(r.nodes) == 0, "ALL_NODES")
	add(r.ahead > 0, "TIME_FLOAT")
	return strings.Join(out, ",")
}
