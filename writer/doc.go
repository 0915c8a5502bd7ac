// Package writer sends rows. Writer.Write takes the PlainBuffer bytes of one batch and returns one outcome for each row. Rows
// that cannot be repeated safely first get a mark or a timestamp, and are looked up before they are sent again. Each row gets
// exactly one outcome, a request that is refused for its content is halved until the bad row is alone, and no row counts as
// written unless the service says so, or nothing of it is left that could be (Expiry). The writer does not wait, does not decide when to retry, and knows nothing of files,
// lanes and rates.
package writer
