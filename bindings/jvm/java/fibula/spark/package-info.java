/**
 * Functions of Spark's SQL over tables of {@code fibula build}: {@link fibula.spark.Functions#register} adds them to a
 * session.
 */
package fibula.spark;
