package sqlite

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// schema is applied in order; user_version counts the applied ones. Times are
// microseconds since the Unix epoch, 0 for none.
var schema = []string{
	`
CREATE TABLE leader (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL, who TEXT NOT NULL) STRICT;
INSERT INTO leader VALUES (1, 0, '');
CREATE TABLE journal (
	seq INTEGER PRIMARY KEY,
	leader_epoch INTEGER NOT NULL,
	at INTEGER NOT NULL,
	kind TEXT NOT NULL,
	job INTEGER NOT NULL,
	data TEXT NOT NULL
) STRICT;
CREATE TABLE job (
	id INTEGER PRIMARY KEY, name TEXT NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL,
	submitted INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL,
	exit INTEGER NOT NULL, detail TEXT NOT NULL
) STRICT;
CREATE TABLE projection (name TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
INSERT INTO projection VALUES ('job', 0);
`,
	// Who asked; the audit that outlives the journal; rows for history; blobs in
	// packs. The projection is made again from the journal, which is whole here.
	`
ALTER TABLE journal RENAME TO journal1;
CREATE TABLE journal (
	seq INTEGER PRIMARY KEY,
	leader_epoch INTEGER NOT NULL,
	at INTEGER NOT NULL,
	kind TEXT NOT NULL,
	job INTEGER NOT NULL,
	by_name TEXT NOT NULL, by_uid INTEGER NOT NULL, by_from TEXT NOT NULL,
	data BLOB NOT NULL -- JSON
) STRICT;
INSERT INTO journal SELECT seq, leader_epoch, at, kind, job, '', 0, '', CAST(data AS BLOB) FROM journal1 ORDER BY seq;
DROP TABLE journal1;
CREATE INDEX journal_job ON journal (job, seq) WHERE job <> 0;
CREATE TABLE audit (
	seq INTEGER PRIMARY KEY,
	leader_epoch INTEGER NOT NULL,
	at INTEGER NOT NULL,
	kind TEXT NOT NULL,
	job INTEGER NOT NULL,
	by_name TEXT NOT NULL, by_uid INTEGER NOT NULL, by_from TEXT NOT NULL,
	data BLOB NOT NULL
) STRICT;
CREATE INDEX audit_job ON audit (job, seq) WHERE job <> 0;
CREATE INDEX audit_at ON audit (at);

DROP TABLE job;
CREATE TABLE job (
	id INTEGER PRIMARY KEY, array INTEGER NOT NULL, task INTEGER NOT NULL,
	name TEXT NOT NULL, user TEXT NOT NULL, account TEXT NOT NULL, part TEXT NOT NULL, qos TEXT NOT NULL,
	state TEXT NOT NULL, nodes TEXT NOT NULL,
	cpus INTEGER NOT NULL, gpus INTEGER NOT NULL, priority INTEGER NOT NULL,
	submitted INTEGER NOT NULL, started INTEGER NOT NULL,
	ended INTEGER NOT NULL, -- 9223372036854775807: not ended
	exit INTEGER NOT NULL, final INTEGER NOT NULL,
	detail BLOB NOT NULL -- JSON
) STRICT;
CREATE INDEX job_live ON job (id, user, account, part, state) WHERE final = 0;
CREATE INDEX job_array ON job (array, id) WHERE array <> 0;
CREATE INDEX job_user ON job (user, id, ended, submitted) WHERE final = 1;
CREATE INDEX job_account ON job (account, id, ended, submitted) WHERE final = 1;
CREATE INDEX job_state ON job (state, id, ended, submitted) WHERE final = 1;
CREATE INDEX job_ended ON job (ended, submitted) WHERE final = 1;
UPDATE projection SET seq = 0;
CREATE TABLE doc (name TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE pack (
	id INTEGER PRIMARY KEY,
	size INTEGER NOT NULL, -- how far the file is valid
	put INTEGER NOT NULL, -- when one of its blobs was put last
	born INTEGER NOT NULL -- when the first one was
) STRICT;
CREATE TABLE small (
	id INTEGER PRIMARY KEY,
	put INTEGER NOT NULL, -- when it was put last
	hash BLOB NOT NULL,
	data BLOB NOT NULL
) STRICT;
CREATE INDEX small_put ON small (put);
CREATE TABLE blob (
	hash BLOB PRIMARY KEY,
	pack INTEGER NOT NULL, -- 0: the bytes are in the table small
	at INTEGER NOT NULL, -- where in the pack, or the id in small
	size INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`,
	// A checksum in every row (sum.go). sumRows fills it in.
	`
ALTER TABLE leader ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE journal ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE projection ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE doc ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pack ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE small ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE blob ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
`,
}

// summedSchema is the schema that gave the rows their checksums.
const summedSchema = 3

// schemaSum is the checksum of the text of the schema, as the database keeps it.
const schemaSum = 2538220892

func (s *Store) migrateSchema() error {
	have, _, err := s.write.queryNumber("PRAGMA user_version")
	if err != nil {
		return classifyError(fmt.Errorf("read the schema version of %s: %w", s.dir, err))
	}
	if int(have) > len(schema) {
		return tooNew(s.dir, int(have))
	}
	if have == 0 {
		if err := s.refuseOrphaned(); err != nil {
			return err
		}
	}
	for v := int(have); v < len(schema); v++ {
		err := s.write.inTransaction(func() error {
			if err := s.write.runScript(schema[v]); err != nil {
				return err
			}
			if v+1 == summedSchema {
				if err := sumRows(s.write); err != nil {
					return err
				}
			}
			return s.write.runScript(fmt.Sprintf("PRAGMA user_version = %d", v+1))
		})
		if err != nil {
			return classifyError(fmt.Errorf("schema %d of %s: %w", v+1, s.dir, err))
		}
	}
	return nil
}

// refuseOrphaned refuses to begin a new journal beside the blobs of one that is gone: job
// numbers would be given a second time.
func (s *Store) refuseOrphaned() error {
	for _, name := range []string{"packs", "blobs"} {
		if entries, err := os.ReadDir(filepath.Join(s.dir, name)); err == nil && len(entries) > 0 {
			return fault.New(fault.Internal, "%s has blobs in %s and no journal: journal.db is gone or empty", s.dir, name).
				Advise("put journal.db back from a backup, or start with another --state-dir")
		}
	}
	return nil
}

func tooNew(dir string, have int) error {
	return fault.New(fault.Unsupported, "%s was written by a newer cox (schema %d, this one knows %d)", dir, have, len(schema)).
		Advise("use the newer cox, put the backup from before the upgrade in its place, or name another --state-dir")
}
