//go:build planted_part_of_gang

package planted

const PartOfGang = true
