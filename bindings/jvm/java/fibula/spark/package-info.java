/**
 * Functions of Spark's SQL over tables of {@code fibula build}: in the catalog {@link fibula.spark.FibulaCatalog}, or
 * added to a session by {@link fibula.spark.Functions#register}.
 */
package fibula.spark;
