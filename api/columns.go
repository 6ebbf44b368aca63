package api

// Lists of jobs can be had as text: GET /v1/jobs with the parameter columns and
// the Accept type TSV answers with one line per job, columns in the order asked
// for, separated by tabs. Tab, newline, carriage return and backslash inside of a
// value are written as \t, \n, \r and \\ (AppendTSV, UnescapeTSV). It is what the fast commands use: no job is decoded that is
// not shown.

// TSV is the media type of lists as text.
const TSV = "text/tab-separated-values"

// NextHeader has the cursor of the next page of a list as text.
const NextHeader = "Cox-Next"

// TotalHeader has how many rows all pages of a sorted list have.
const TotalHeader = "Cox-Total"
