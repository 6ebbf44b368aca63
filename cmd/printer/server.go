package printer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// Info is the card of a server.
func Info(p Page, i *api.ServerInfo, at string) string {
	c := card{p: p}
	c.head("%s: cox %s on %s, up for %s", i.Name, i.Version, i.Host, Duration(i.Now.Sub(i.Started)))
	c.fact("at", at)
	c.fact("api", fmt.Sprintf("%s, serves clients from %s", i.API, i.Oldest))
	c.fact("process", strconv.Itoa(i.PID))
	if i.Gateway != nil {
		text := i.Gateway.Address + ", starts with the first service"
		if i.Gateway.PID > 0 {
			text = fmt.Sprintf("%s, process %d", i.Gateway.Address, i.Gateway.PID)
		}
		c.fact("gateway", text)
	}
	if i.You.Name != "" {
		c.fact("you", identityText(&i.You))
	}
	for _, pool := range i.Pools {
		text := fmt.Sprintf("%s: engine %s", pool.Name, pool.Engine)
		if pool.Version != "" {
			text += " " + pool.Version
		}
		if pool.Gang != "" {
			text += ", gangs " + pool.Gang
		}
		if pool.State != "" && pool.State != api.PoolUp {
			text += ", " + strings.TrimSuffix(pool.State+": "+pool.Why, ": ")
		}
		c.fact("pool", text)
		for _, n := range pool.Notes {
			c.fact("", n)
		}
	}
	for n, text := range i.Damaged {
		if n == damagedAtMost {
			c.fact("", fmt.Sprintf("and %d more: the server's log names them", len(i.Damaged)-n))
			break
		}
		c.fact("damaged", text)
	}
	c.fact("features", strings.Join(i.Features, ", "))
	return c.b.String()
}

// damagedAtMost is how many damaged parts of the state a page names.
const damagedAtMost = 10

func identityText(i *api.Identity) string {
	text := fmt.Sprintf("%s (uid %d), by %s", i.Name, i.UID, i.Via)
	if i.Admin {
		text += ", administrator"
	}
	if len(i.Accounts) > 0 {
		text += ", accounts " + strings.Join(i.Accounts, ", ")
	}
	return text
}

// Tokens is the table of access tokens.
func Tokens(p Page, tokens []api.Token) *Table {
	t := &Table{Columns: []Column{{Title: "ID"}, {Title: "USER"}, {Title: "STATE"}, {Title: "RIGHTS"}, {Title: "CREATED"}, {Title: "EXPIRES"}, {Title: "LAST USED"}, {Title: "COMMENT", Least: 10}}}
	for i := range tokens {
		k := &tokens[i]
		state := Cell{Text: "valid", Tone: Good}
		switch {
		case !k.Revoked.IsZero():
			state = Cell{Text: "revoked", Tone: Bad}
		case !k.Expires.IsZero() && k.Expires.Before(p.Now):
			state = Cell{Text: "expired", Tone: Warn}
		}
		rights := "user"
		if k.Admin {
			rights = "admin"
		}
		if k.Role != "" {
			rights = k.Role
		}
		t.Rows = append(t.Rows, []Cell{
			{Text: k.ID, Tone: Accent}, textCell(k.Name), state, textCell(rights), textCell(p.Time(k.Created)), textCell(p.Time(k.Expires)), textCell(p.Time(k.Used)), textCell(k.Comment),
		})
	}
	return t
}

// Audit is the table of changes with who asked for them; wide adds what changed.
func Audit(p Page, records []api.AuditRecord, wide bool) *Table {
	t := &Table{Columns: []Column{{Title: "SEQ", Right: true}, {Title: "AT"}, {Title: "BY"}, {Title: "FROM"}, {Title: "WHAT"}, {Title: "JOB"}}}
	if wide {
		t.Columns = append(t.Columns, Column{Title: "DATA", Least: 20})
	}
	for i := range records {
		r := &records[i]
		id := ""
		if r.Job != 0 {
			id = r.Job.String()
		}
		cells := []Cell{
			textCell(strconv.FormatUint(r.Seq, 10)), textCell(p.Time(r.At)), textCell(auditActor(r)), textCell(r.From), textCell(r.What), {Text: id, Tone: Accent},
		}
		if wide {
			cells = append(cells, Cell{Text: string(r.Data), Tone: Dim})
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func auditActor(r *api.AuditRecord) string {
	if r.By == "" {
		return "cox"
	}
	return fmt.Sprintf("%s(%d)", r.By, r.UID)
}

// Partitions is the table of partitions.
func Partitions(_ Page, parts []api.Partition) *Table {
	t := &Table{Columns: []Column{{Title: "PARTITION"}, {Title: "STATE"}, {Title: "POOL"}, {Title: "LIMIT", Right: true}, {Title: "DEFAULT", Right: true}, {Title: "NODES", Least: 12}}}
	for i := range parts {
		pt := &parts[i]
		name := pt.Name
		if pt.Default {
			name += "*"
		}
		t.Rows = append(t.Rows, []Cell{
			{Text: name, Tone: Accent}, textCell(pt.State), textCell(pt.Pool), textCell(limitText(Seconds(pt.TimeLimit))), textCell(limitText(Seconds(pt.DefaultTime))), textCell(Hosts(pt.Nodes)),
		})
	}
	return t
}
