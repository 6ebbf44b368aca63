package sqlite

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strings"

	"github.com/coxswain-sched/coxswain/store"
)

// table is a table whose rows carry a checksum in their last column, sum. The checksum
// covers the columns that are named here, with their types.
type table struct {
	name, key string
	columns   string // those that are summed, in the order of the table, the key first
	kind      string // what the checksum is seeded with; rows of one kind may move between tables
	count     int    // of columns
}

func newTable(name, kind, columns string) *table {
	key, _, _ := strings.Cut(columns, ",")
	return &table{name: name, key: key, columns: columns, kind: kind, count: strings.Count(columns, ",") + 1}
}

var (
	leaderTable     = newTable("leader", "leader", "one, epoch, who")
	journalTable    = newTable("journal", "record", recordColumns)
	auditTable      = newTable("audit", "record", recordColumns)
	jobTable        = newTable("job", "job", jobColumns)
	projectionTable = newTable("projection", "projection", "name, seq")
	docTable        = newTable("doc", "doc", "name, data")
	packTable       = newTable("pack", "pack", "id, size, put, born")
	smallTable      = newTable("small", "small", "id, put, hash") // data is checked by its hash
	blobTable       = newTable("blob", "blob", "hash, pack, at, size")
)

var tables = []*table{leaderTable, journalTable, auditTable, jobTable, projectionTable, docTable, packTable, smallTable, blobTable}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// rowSum is the checksum of a row: CRC-32C of the kind and of every value with its type.
// It finds every change of up to 32 bits in a row.
func rowSum(kind string, values []driver.Value) int64 {
	var head [9]byte
	sum := crc32.Update(0, castagnoli, []byte(kind))
	add := func(sort byte, n uint64) {
		head[0] = sort
		binary.LittleEndian.PutUint64(head[1:], n)
		sum = crc32.Update(sum, castagnoli, head[:])
	}
	for _, v := range values {
		switch v := v.(type) {
		case int64:
			add('i', uint64(v))
		case string:
			add('s', uint64(len(v)))
			sum = crc32.Update(sum, castagnoli, []byte(v))
		case []byte:
			add('b', uint64(len(v)))
			sum = crc32.Update(sum, castagnoli, v)
		case nil: // how the driver hands out an empty blob
			add('b', 0)
		case float64:
			add('f', math.Float64bits(v))
		default:
			add('?', 0)
		}
	}
	return int64(sum)
}

// withSum appends the checksum to the values of a row.
func (t *table) withSum(values ...driver.Value) []driver.Value {
	return append(values, rowSum(t.kind, values))
}

// isIntact reports whether a row reads as it was written. Its values are those of the
// columns of the table, then its checksum.
func (t *table) isIntact(row []driver.Value) bool {
	n := len(row) - 1
	sum, ok := row[n].(int64)
	return ok && sum == rowSum(t.kind, row[:n])
}

// selectRows is the beginning of a SELECT whose rows isIntact can check.
func (t *table) selectRows() string { return "SELECT " + t.columns + ", sum FROM " + t.name }

// damageOf describes a row that does not read as it was written.
func (t *table) damageOf(row []driver.Value) store.Damage {
	d := store.Damage{Table: t.name, Row: fmt.Sprint(row[0]), Why: "its checksum is wrong"}
	if b, ok := row[0].([]byte); ok {
		d.Row = fmt.Sprintf("%x", b)
	}
	if id, ok := row[0].(int64); ok && t == jobTable && id > 0 {
		d.Job = uint64(id)
	}
	return d
}

// sumRows writes the checksums of all rows of all tables.
func sumRows(c *conn) error {
	for _, t := range tables {
		var keys []driver.Value
		var sums []int64
		flush := func() error {
			for i, key := range keys {
				if _, err := c.execRows("UPDATE "+t.name+" SET sum = ? WHERE "+t.key+" = ?", sums[i], key); err != nil {
					return err
				}
			}
			keys, sums = keys[:0], sums[:0]
			return nil
		}
		query, args := "SELECT "+t.columns+" FROM "+t.name+" ORDER BY "+t.key+" LIMIT ?", []driver.Value{int64(page)}
		for {
			err := c.queryRows(func(row []driver.Value) error {
				keys, sums = append(keys, row[0]), append(sums, rowSum(t.kind, row))
				return nil
			}, query, args...)
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				break
			}
			if len(args) == 2 && !isBehind(keys[len(keys)-1], args[0]) {
				return errDisorder
			}
			query = "SELECT " + t.columns + " FROM " + t.name + " WHERE " + t.key + " > ? ORDER BY " + t.key + " LIMIT ?"
			args = []driver.Value{keys[len(keys)-1], int64(page)}
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return nil
}
