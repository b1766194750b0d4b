const {PGHOST, PGPORT, PGUSER, PGDATABASE} = process.env;

module.exports = {
  dialect: 'postgresql',
  schema: './schema.js',
  dbCredentials: {host: PGHOST, port: Number(PGPORT), user: PGUSER, database: PGDATABASE, ssl: false},
};
