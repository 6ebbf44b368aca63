// Package provenance records at submission where a job's work came from: the commit
// and state of the working directory, hashes of the files that were named, the
// digest of an image where it is part of its name.
//
// It is a witness, never a gate: Collect does not fail, does not wait longer than
// its deadline whatever the file system does, and says in Notes what it left out and
// why. Outside of a git repository it starts no process.
//
// It runs as the submitting user, in the submitting command: it reads what that user
// can read. What a repository's own configuration could make git execute (monitors,
// hooks, pagers, filters) is turned off; commit, branch and remote are read from the
// repository's files without git, and git is asked only whether anything differs. A
// repository of somebody else is left to git's own rule (safe.directory).
//
// The environment is not recorded here: it is part of the job. EnvironmentPolicy
// says what of it is submitted.
package provenance
